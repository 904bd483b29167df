"""From labels to Gaussian sites: regression, Laplace and EP.

May import solving.
"""
