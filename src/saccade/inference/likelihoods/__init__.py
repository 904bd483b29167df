"""From labels to Gaussian sites: regression, Laplace and EP.

May import solving and leave_one_out.closed_form.
"""
