"""A larder on the command line."""

__version__ = "0.4.0"
