"""Covariance functions; each is a `Kernel`: called on data it gives a dense block."""

from .base import Kernel
from .combine import Scaled, Sum
from .dot import Chi2, Linear
from .generalized import GeneralizedRBF
from .intersection import HIK, Exponential, Power, Weights
from .stationary import RBF, Laplacian

__all__ = [
    "HIK",
    "RBF",
    "Chi2",
    "Exponential",
    "GeneralizedRBF",
    "Kernel",
    "Laplacian",
    "Linear",
    "Power",
    "Scaled",
    "Sum",
    "Weights",
]
