"""Real pictures that ship with scikit-image, cut into small ones: three textures as three classes."""

from pathlib import Path

import numpy as np
from skimage import data

from saccade._core.arrays import Array

CLASSES = {"brick": data.brick, "grass": data.grass, "gravel": data.gravel}


def textures(each: int = 8, side: int = 64, seed: int = 0) -> tuple[list[Array], Array]:
    """`each` pieces of every texture, (side, side, 3) uint8, and their names."""
    rng = np.random.default_rng(seed)
    pictures, labels = [], []
    for name, load in CLASSES.items():
        whole = load()
        for _ in range(each):
            y, x = rng.integers(0, np.array(whole.shape) - side)
            pictures.append(np.repeat(whole[y : y + side, x : x + side, None], 3, axis=2))
            labels.append(name)
    return pictures, np.array(labels)


def write_folder(root: Path, each: int = 8, side: int = 64, seed: int = 0) -> None:
    """The textures as files, a folder per class."""
    from PIL import Image

    for number, (picture, label) in enumerate(zip(*textures(each, side, seed), strict=True)):
        (root / label).mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture).save(root / label / f"{number:03}.{('png', 'jpg', 'webp')[number % 3]}")
