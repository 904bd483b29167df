"""Saccade: one Gaussian process on pictures, for recognising, noticing, asking and finding."""

__version__ = "0.1.0"
