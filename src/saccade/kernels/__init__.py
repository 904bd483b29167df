"""Covariance functions; each is a `Kernel`: called on data it gives a dense block."""

from .base import Kernel
from .centred import Centred
from .combine import Scaled, Sum
from .dot import Chi2, Linear
from .generalized import GeneralizedRBF
from .intersection import HIK
from .monotone import Monotone
from .stationary import RBF, Laplacian
from .transforms import Exponential, Power, Transform, Weights

__all__ = [
    "HIK",
    "RBF",
    "Centred",
    "Chi2",
    "Exponential",
    "GeneralizedRBF",
    "Kernel",
    "Laplacian",
    "Linear",
    "Monotone",
    "Power",
    "Scaled",
    "Sum",
    "Transform",
    "Weights",
]
