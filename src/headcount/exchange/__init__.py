"""The outside world: what others saved, under their names."""
