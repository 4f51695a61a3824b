"""Loss to optimiser to checkpoint: everything that happens while a model learns."""
