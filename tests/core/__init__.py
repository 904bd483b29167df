"""Tests of saccade._core."""
