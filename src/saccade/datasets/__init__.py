"""Data for experiments, benchmarks and tests; nothing is downloaded.

`digits` and `faces` are real pictures that ship with scikit-learn and scikit-image. `histograms` draws random ones of
any size. The others are research pictures that a user has on disk, in the folder that SACCADE_DATA names.

>>> from saccade.datasets import digits
>>> X, y = digits()
>>> X.shape
(1797, 64)
"""

from typing import TYPE_CHECKING

from saccade._core.lazy import lazy_names

if TYPE_CHECKING:
    from saccade.datasets.embedded import digits, faces
    from saccade.datasets.on_disk import Photographs, caltech101, caltech101_boxes, data_folder, portland, scenes15
    from saccade.datasets.synthetic import histograms

__all__ = [
    "Photographs",
    "caltech101",
    "caltech101_boxes",
    "data_folder",
    "digits",
    "faces",
    "histograms",
    "portland",
    "scenes15",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        **dict.fromkeys(("Photographs", "caltech101", "caltech101_boxes", "data_folder"), "on_disk"),
        **dict.fromkeys(("portland", "scenes15"), "on_disk"),
        **{"digits": "embedded", "faces": "embedded", "histograms": "synthetic"},
    },
)
