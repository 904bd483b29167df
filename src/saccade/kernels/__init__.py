"""Covariance functions; each is a `Kernel`: called on data it gives a dense block."""

from .base import Kernel
from .centred import Centred
from .combine import Product, Scaled, Sum
from .dot import Chi2, Linear
from .generalized import GeneralizedRBF
from .intersection import HIK
from .monotone import Monotone
from .stationary import RBF, Laplacian, Matern
from .transform_sum import TransformSum
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
    "Matern",
    "Monotone",
    "Power",
    "Product",
    "Scaled",
    "Sum",
    "Transform",
    "TransformSum",
    "Weights",
]
