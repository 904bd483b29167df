"""Tests of saccade.datasets."""
