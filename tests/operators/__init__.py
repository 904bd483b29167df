"""Tests of saccade.operators."""
