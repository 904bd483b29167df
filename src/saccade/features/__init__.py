"""From pixels to non-negative vectors: scikit-learn transformers for pictures.

>>> from saccade.features import image_features
>>> [name for name, _ in image_features("classic").steps]
['resize', 'densesift', 'spatialpyramid']
"""

from typing import TYPE_CHECKING

from saccade._core.lazy import lazy_names

if TYPE_CHECKING:
    from saccade.features.codebook import BagOfWords
    from saccade.features.deep import DeepFeatures
    from saccade.features.descriptors import DenseSIFT, OpponentSIFT
    from saccade.features.forest import ForestCodebook
    from saccade.features.gradients import HOG, PHOG
    from saccade.features.image import Pictures, Resize, read_pictures
    from saccade.features.lazy import Descriptors
    from saccade.features.projection import DescriptorPCA
    from saccade.features.pyramid import SpatialPyramid
    from saccade.features.pyramid_match import PyramidHistogram
    from saccade.features.recipes import image_features, recommended_settings
    from saccade.features.serialize import load_features

__all__ = [
    "HOG",
    "PHOG",
    "BagOfWords",
    "DeepFeatures",
    "DenseSIFT",
    "DescriptorPCA",
    "Descriptors",
    "ForestCodebook",
    "OpponentSIFT",
    "Pictures",
    "PyramidHistogram",
    "Resize",
    "SpatialPyramid",
    "image_features",
    "load_features",
    "read_pictures",
    "recommended_settings",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "BagOfWords": "codebook",
        "DeepFeatures": "deep",
        "DenseSIFT": "descriptors",
        "DescriptorPCA": "projection",
        "Descriptors": "lazy",
        "ForestCodebook": "forest",
        "HOG": "gradients",
        "OpponentSIFT": "descriptors",
        "PHOG": "gradients",
        "Pictures": "image",
        "PyramidHistogram": "pyramid_match",
        "Resize": "image",
        "SpatialPyramid": "pyramid",
        "image_features": "recipes",
        "load_features": "serialize",
        "recommended_settings": "recipes",
        "read_pictures": "image",
    },
    renamed={"images": "image_features", "model_settings": "recommended_settings"},
)
