"""Bytes to tokens to batches. Knows nothing of models."""
