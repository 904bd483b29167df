"""Training examples as if each had not been there: closed forms, for every approximation.

May import approximations, likelihoods and solving; a `GP` is handed to it.
"""
