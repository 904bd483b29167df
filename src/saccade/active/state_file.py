"""A campaign in one file: every answer in order, the audit, the model's parameters and the posterior. No code in it.

The pool itself is not in the file. Its digest is, so that answers never meet other rows; a pool that grew at its end is
welcome, and the posterior is then made from the answers again.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from saccade._core import limits, model_file
from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput, ModelFileError
from saccade.active.one_at_a_time import alone_in
from saccade.active.pool import digest
from saccade.active.stopping import Audit
from saccade.estimators.classifier import GPClassifier
from saccade.inference.posterior.pool import PoolPosterior
from saccade.kernels import HIK
from saccade.kernels.serialize import read_kernel, write_kernel

if TYPE_CHECKING:
    from saccade.active.learner import ActiveLearner

KIND = "ActiveLearner"
ARRAYS = ("mean", "variance")
CLOSE = 1e-2  # the same posterior step by step and from the start: iteration with little noise differs by 1e-3


def save(learner: ActiveLearner, path: Any, known: Container[str]) -> str:
    """Write atomically, and return the digest of the file. What is there must be a file with a digest of `known`."""
    model, field, n = learner.given, learner.field, learner.rows_in_pool
    kernel, parameters = field.gram.kernel, model.get_params(deep=False)
    parameters = {k: v.item() if isinstance(v, np.generic) else v for k, v in parameters.items() if k != "kernel"}
    header = {
        "estimator": KIND,
        "pool": {"rows": n, "features": int(learner.X.shape[1]), "digest": digest(learner.X)},
        "model": {
            "parameters": {k: v for k, v in parameters.items() if _plain(v)},
            "kernel": write_kernel(kernel, model.kernel) if isinstance(kernel, HIK) else None,
            "left_out": {k: repr(v) for k, v in parameters.items() if not _plain(v)},
            "shown": repr(model.kernel),
        },
        "strategy": learner.strategy,
        "joint": learner.joint,
        "seed": learner.seed,
        "audit": learner.audit.state(),
        "history": [[list(told.rows), list(told.labels)] for told in learner.history],
    }
    tensors = {name: getattr(field, name) for name in ARRAYS} | {"observed": field.rows}
    if learner.costs is not None:
        tensors["costs"] = learner.costs
    path = Path(path)
    with alone_in(path.parent):
        if path.is_file() and _digest(path) not in known:
            raise InvalidInput(_how_to_merge(str(path)))
        model_file.write(path, header, tensors)
        return model_file.digest_of(path)


def _digest(path: Path) -> str:
    """What tells the content of a file from any other; "" for what is no model file."""
    try:
        return model_file.digest_of(path)
    except (ModelFileError, OSError):
        return ""


def _how_to_merge(path: str) -> str:
    return f"""{path} is there, and this learner has not read it as it is now: it may hold answers of somebody else. \
Nothing was saved. To keep the answers of both, load the file, tell it what it lacks, and save that:
    both = ActiveLearner.load({path!r}, X)
    new = {{row: label for row, label in learner.labels.items() if row not in both.labels}}
    both.tell(list(new), list(new.values()))
    both.save({path!r})
Or save under another name, or delete the file if nobody needs it."""


def load(kind: type[ActiveLearner], path: Any, X: Any, model: Any) -> ActiveLearner:
    """The campaign of a file, with its pool."""
    with _described(path):
        file = _digest(Path(path))  # before the rest: if the file changes now, a later save refuses
        header, tensors = model_file.read(path, _judge)
        pool = header["pool"]
        n, d = int(pool["rows"]), int(pool["features"])
        same = X.shape[0] >= n and X.shape[1] == d and digest(X[:n]) == pool["digest"]
    if not same:
        raise InvalidInput(
            f"{path} belongs to another pool: {n} rows of {d} features, and these are {X.shape[0]} of {X.shape[1]}, or "
            "the same number with other values or in another order. Pass the pool it was made with; rows may have been "
            "added at its end."
        )
    with _described(path):
        given = _model(header["model"], X.shape[1]) if model is None else model
        costs = tensors.get("costs")
        if costs is not None and X.shape[0] > n:
            costs = np.append(costs, np.full(X.shape[0] - n, np.median(costs)))
        seed, audit = header["seed"], Audit.from_state(header["audit"])
        if type(seed) is not int or not 0 <= seed < 2**31 or audit.rows.max(initial=0) >= n:
            raise ValueError(f"seed {seed!r}, audit rows up to {audit.rows.max(initial=0)} of {n}")
        if X.shape[0] > n:
            audit = audit.grown(n, X.shape[0], np.random.default_rng([seed, n, X.shape[0]]))
        options = {"strategy": header["strategy"], "joint": header["joint"], "costs": costs}
        learner = kind(X, given, **options, audit=0.0, random_state=0)
        learner.resume(seed, audit, header["history"], None if X.shape[0] > n else tensors, file)
    return learner


@contextmanager
def _described(path: Any) -> Iterator[None]:
    """Whatever is wrong with what a file says is one kind of error."""
    try:
        yield
    except ModelFileError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        raise ModelFileError(f"{path} does not describe a campaign ({error!r}). Save it again.") from None


def restored(field: PoolPosterior, tensors: dict[str, Array]) -> PoolPosterior:
    """The field with the numbers of the file, so that the next question is the same to the last digit."""
    found = {name: tensors[name] for name in ARRAYS}
    if not np.array_equal(np.sort(field.rows), np.sort(tensors["observed"])):  # undone answers change the order
        raise ValueError("other rows were observed than the answers say")
    for name, values in found.items():
        if values.shape != getattr(field, name).shape or values.dtype != np.float64 or not np.isfinite(values).all():
            raise ValueError(f"{name} does not fit the pool")
    variance, most = found["variance"], field.prior * (1.0 + CLOSE)
    if not (np.allclose(found["mean"], field.mean, CLOSE, CLOSE) and ((variance >= 0.0) & (variance <= most)).all()):
        raise ModelFileError(
            "The numbers of the file are not those of its answers with this model. Pass model= as it was at the start."
        )
    return replace(field, mean=found["mean"], variance=variance)


def _judge(header: dict[str, Any], layout: model_file.Layout) -> None:
    """What can be refused before a tensor is read."""
    if header.get("estimator") != KIND:
        raise ModelFileError(
            f"The file holds a {header.get('estimator')}, no campaign. saccade.load reads models; "
            "ActiveLearner.load reads what ActiveLearner.save wrote."
        )
    n = int(header["pool"]["rows"])
    for name, place in layout.items():
        if name not in (*ARRAYS, "observed", "costs") or len(place.shape) > 2 or (place.shape and place.shape[0] > n):
            raise ValueError(f"{name} of shape {place.shape} is none of a campaign")


def _model(written: dict[str, Any], features: int) -> GPClassifier:
    if written["kernel"] is None:
        raise ModelFileError(
            f"A file keeps intersection kernels only, and this campaign has {written['shown']}. Pass model= as it was "
            "at the start."
        )
    if written["left_out"]:
        raise ModelFileError(f"A file cannot keep {written['left_out']}. Pass model= as it was at the start.")
    resolved, _ = read_kernel(written["kernel"], features)
    return GPClassifier(resolved, **written["parameters"])


def _plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str)


def read_label(value: Any) -> Any:
    """A label of a file: text, a number or None, and nothing else."""
    if not (value is None or isinstance(value, str | int | float)):
        raise ValueError(f"a label {value!r}")
    if isinstance(value, str) and len(value) > limits.LABEL_BYTES:
        raise ValueError("a label that is too long")
    return value
