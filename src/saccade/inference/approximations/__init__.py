"""Approximations of K̃⁻¹ for mean and variance, all behind one list of names (by_name.py).

May import solving.
"""
