"""Covariance functions; each is a `Kernel`: called on data it gives a dense block."""

from saccade.kernels.base import Kernel
from saccade.kernels.centred import Centred
from saccade.kernels.combine import Product, Scaled, Sum
from saccade.kernels.dot import Chi2, Linear
from saccade.kernels.generalized import GeneralizedRBF
from saccade.kernels.intersection import HIK
from saccade.kernels.monotone import Monotone
from saccade.kernels.stationary import RBF, Laplacian, Matern
from saccade.kernels.transform_sum import TransformSum
from saccade.kernels.transforms import Exponential, Power, Transform, Weights

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
