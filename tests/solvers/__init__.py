"""Tests of saccade.solvers."""
