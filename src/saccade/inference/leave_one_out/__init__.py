"""Training examples as if each had not been there: closed forms, for every approximation.

closed_form.py imports nothing of inference; the others may import approximations and solving.
"""
