"""What one does with a run: train it, load it, score, evaluate, generate, pack."""
