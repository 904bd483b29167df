"""The transformers in front of a model, as a model file keeps them.

Estimators write them and `saccade.features` reads them, and neither knows the other: a transformer describes itself.
"""

from typing import Any

from saccade._core.arrays import Array
from saccade._core.errors import ModelFileError

PREFIX = "pictures"


def describe(
    features: Any,  # a fitted transformer of saccade.features, or a Pipeline of them
) -> tuple[list[dict[str, Any]], dict[str, Array]]:
    """The steps as values for JSON, and what they learned as arrays."""
    steps = [step for _, step in features.steps] if hasattr(features, "steps") else [features]
    described: list[dict[str, Any]] = []
    arrays: dict[str, Array] = {}
    for k, step in enumerate(steps):
        if not hasattr(step, "description"):
            raise ModelFileError(
                f"{step!r} cannot be saved beside a model. Pass a transformer of saccade.features, or a Pipeline of "
                "such transformers alone."
            )
        described.append(step.description())
        arrays |= {f"{PREFIX}/{k}/{name}": array for name, array in step.state().items()}
    return described, arrays
