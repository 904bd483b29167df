"""A finder that learns from boxes: judge, response, place of the object, and how often its answers are right.

It stands on `search`, `priors`, `situations` and the judges, and may import estimators and features.
"""
