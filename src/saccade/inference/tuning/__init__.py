"""Kernel parameters and noise learned by evidence or leave-one-out: options, objectives with slopes, the search.

May import solving.
"""
