"""Model and bytes to figure: the first place where text and models meet."""
