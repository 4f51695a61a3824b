"""Parts that two or more models are made of."""
