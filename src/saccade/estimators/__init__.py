"""scikit-learn faces."""
