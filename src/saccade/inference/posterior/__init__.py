"""The fitted Gaussian process and every question about it: with its examples, as tables, and over a pool.

May import every other folder of inference; nothing in inference imports it but `leave_one_out.examples`.
"""
