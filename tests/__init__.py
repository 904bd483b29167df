"""The tests mirror src/saccade; tolerances.py holds every tolerance."""
