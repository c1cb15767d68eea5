"""The version of the program; what is sent has a number of its own (`transport.wire.PROTOCOLS`)."""

__version__ = "0.2.0"
