"""Which version this is; in a file of its own, so that whoever writes it down need not import the whole package."""

__version__ = "0.1.0"
