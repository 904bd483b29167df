"""Densities over boxes: where an object may be before and between looks, and how they are learned and saved.

May import boxes.
"""
