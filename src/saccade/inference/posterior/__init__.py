"""The fitted Gaussian process and every question about it: with its examples, as tables, and over a pool.

May import every other folder of inference but tuning; nothing in inference imports it.
"""
