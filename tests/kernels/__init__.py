"""Tests of saccade.kernels."""
