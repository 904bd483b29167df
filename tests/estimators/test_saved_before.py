"""Model files of the version before the fitted GP was one object answer as they did; the answers lie beside them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from saccade import load

FOLDER = Path(__file__).parent / "saved_before"
ANSWERS = json.loads((FOLDER / "answers.json").read_text())
NEW = np.array(ANSWERS["new"])
CLOSE = {"variance": 1e-6}  # sums of float32 tables, rounded as the processor does; 1e-9 for all else


def novelty(model: Any, known: int) -> Any:
    """Up to the largest number that it was: an example beyond all that are known now has a larger one."""
    return np.minimum(model.novelty(NEW), known / (known + 1))


def classifier(model: Any) -> dict[str, Any]:
    return {
        "proba": model.predict_proba(NEW),
        "novelty": novelty(model, model.novelty_reference_.known),
        "variance": model.latent_mean_and_variance(NEW)[1],
    }


def regressor(model: Any) -> dict[str, Any]:
    mean, std = model.predict(NEW, return_std=True)
    return {"mean": mean, "std": std}


ASKED = {
    "classifier": classifier,
    "grid": lambda model: {"proba": model.predict_proba(NEW)},
    "regressor": regressor,
    "one_class": lambda model: {"scores": model.score_samples(NEW), "novelty": novelty(model, model.n_known_)},
    "svdd": lambda model: {"scores": model.score_samples(NEW)},
}


@pytest.mark.parametrize("name", ASKED)
def test_it_answers_as_it_did(name: str) -> None:
    found = ASKED[name](load(FOLDER / f"{name}.saccade"))
    for question, wanted in ANSWERS[name].items():
        np.testing.assert_allclose(
            found[question], wanted, rtol=CLOSE.get(question, 1e-9), atol=1e-12, err_msg=question
        )


@pytest.mark.parametrize("name", ASKED)
def test_saved_again_it_still_does(name: str, tmp_path: Path) -> None:
    load(FOLDER / f"{name}.saccade").save(tmp_path / "again")
    found, wanted = (ASKED[name](load(path)) for path in (tmp_path / "again", FOLDER / f"{name}.saccade"))
    for question, answer in wanted.items():
        np.testing.assert_array_equal(found[question], answer)
