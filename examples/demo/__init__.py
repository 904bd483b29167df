"""A first look: digits and a face, beside scikit-learn. `make demo`, or `python -m examples.demo`."""
