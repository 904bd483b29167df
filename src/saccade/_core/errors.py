"""Every error saccade raises on purpose.

::

    Exception
     └─ SaccadeError
         ├─ InvalidInput       (also a ValueError)   the data cannot be used as it is
         ├─ InvalidParameter   (also a ValueError)   a constructor keyword is out of range
         └─ ModelFileError     (also a ValueError)   a model file is foreign, truncated or tampered

An estimator used before ``fit`` raises scikit-learn's own ``sklearn.exceptions.NotFittedError``.

A message says the name, the need, the value and the remedy:
"`noise` must be positive, got 0.0. For noise-free data pass noise=1e-10."
"""

__all__ = ["InvalidInput", "InvalidParameter", "ModelFileError", "SaccadeError"]


class SaccadeError(Exception):
    """The root of the tree: catch it to catch everything saccade raises on purpose."""


class InvalidInput(SaccadeError, ValueError):
    """The data cannot be used as it is: wrong shape, sign or range."""


class InvalidParameter(SaccadeError, ValueError):
    """A constructor keyword is out of range or of the wrong kind."""


class ModelFileError(SaccadeError, ValueError):
    """A model file is foreign, truncated, tampered with or of an unknown version."""
