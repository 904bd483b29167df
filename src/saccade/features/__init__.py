"""From pixels to non-negative vectors: scikit-learn transformers for pictures."""
