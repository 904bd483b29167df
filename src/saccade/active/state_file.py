"""A campaign in one file: every answer in order, the audit, the model's parameters and the posterior. No code in it.

The pool itself is not in the file. Its digest is, so that answers never meet other rows; a pool that grew at its end is
welcome, and the posterior is then made from the answers again.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from saccade._core import codec, model_file
from saccade._core.arrays import Array
from saccade._core.codec import Record
from saccade._core.errors import InvalidInput, ModelFileError
from saccade._core.fields import InHeader, Many, Maybe, Named, Numbers, Plain, Row, flag, number, plain, text, whole
from saccade.active.one_at_a_time import alone_in
from saccade.active.pool import digest
from saccade.active.strategies import STRATEGIES
from saccade.active.target_audit import AUDITS
from saccade.estimators.classifier import GPClassifier
from saccade.inference.posterior.pool import PoolPosterior
from saccade.kernels import HIK
from saccade.kernels.serialize import read_kernel, write_kernel

if TYPE_CHECKING:
    from saccade.active.learner import ActiveLearner

CLOSE = 1e-2  # the same posterior step by step and from the start: iteration with little noise differs by 1e-3


def save(learner: ActiveLearner, path: Any, known: Container[str]) -> str:
    """Write atomically, and return the digest of the file. What is there must be a file with a digest of `known`."""
    header, tensors = codec.to_file(CAMPAIGN, learner)
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
    file = _digest(Path(path))  # before the rest: if the file changes now, a later save refuses
    header, tensors = model_file.read(path, partial(codec.check_layout, CAMPAIGN, source=path))
    saved = codec.from_file(CAMPAIGN, header, tensors, path)
    n, d = saved["pool"]["rows"], saved["pool"]["features"]
    if X.shape[0] < n or X.shape[1] != d or digest(X[:n]) != saved["pool"]["digest"]:
        raise InvalidInput(
            f"{path} belongs to another pool: {n} rows of {d} features, and these are {X.shape[0]} of {X.shape[1]}, or "
            "the same number with other values or in another order. Pass the pool it was made with; rows may have been "
            "added at its end."
        )
    try:
        return _resumed(kind, saved, X, model, file)
    except ModelFileError:
        raise
    except codec.UNSOUND as error:
        raise ModelFileError(f"{path} does not describe a campaign ({error!r}). Save it again.") from None


def _resumed(kind: type[ActiveLearner], saved: dict[str, Any], X: Any, model: Any, file: str) -> ActiveLearner:
    n, audit, costs, seed = saved["pool"]["rows"], saved["audit"], saved["costs"], saved["seed"]
    if audit.rows.max(initial=0) >= n:
        raise ValueError(f"audit rows up to {audit.rows.max(initial=0)} of {n}")
    if X.shape[0] > n:
        audit = audit.grown(n, X.shape[0], np.random.default_rng([seed, n, X.shape[0]]))
        costs = None if costs is None else np.append(costs, np.full(X.shape[0] - n, np.median(costs)))
    given = _model(saved["model"], X.shape[1]) if model is None else model
    losses = None if saved["losses"] is None else {(said, true): cost for said, true, cost in saved["losses"]}
    options = {
        **{name: saved[name] for name in ("strategy", "joint", "use_pool")},
        **{"costs": costs, "losses": losses},
    }
    learner = kind(X, given, **options, audit=0.0, random_state=0)
    learner.resume(seed, audit, saved["history"], None if X.shape[0] > n else saved, file)
    return learner


def restored(field: PoolPosterior, tensors: dict[str, Array]) -> PoolPosterior:
    """The field with the numbers of the file, so that the next question is the same to the last digit."""
    if not np.array_equal(np.sort(field.rows), np.sort(tensors["observed"])):  # undone answers change the order
        raise ValueError("other rows were observed than the answers say")
    mean, variance, most = tensors["mean"], tensors["variance"], field.prior * (1.0 + CLOSE)
    if mean.shape != field.mean.shape:
        raise ValueError(f"the mean of {mean.shape} is none of a pool of {field.mean.shape}")
    if not (np.allclose(mean, field.mean, CLOSE, CLOSE) and (variance <= most).all()):
        raise ModelFileError(
            "The numbers of the file are not those of its answers with this model. Pass model= as it was at the start."
        )
    return replace(field, mean=mean, variance=variance)


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


def _model_fields(learner: ActiveLearner) -> dict[str, Any]:
    model, kernel = learner.given, learner.field.gram.kernel
    found = {k: v.item() if isinstance(v, np.generic) else v for k, v in model.get_params(deep=False).items()}
    del found["kernel"]
    simple = {k: v for k, v in found.items() if v is None or isinstance(v, bool | int | float | str)}
    return {
        "parameters": simple,
        "kernel": write_kernel(kernel, model.kernel) if isinstance(kernel, HIK) else None,
        "left_out": {k: repr(v) for k, v in found.items() if k not in simple},
        "shown": repr(model.kernel),
    }


def _fields(learner: ActiveLearner) -> dict[str, Any]:
    pool = {"rows": learner.rows_in_pool, "features": int(learner.X.shape[1]), "digest": digest(learner.X)}
    options = {name: getattr(learner, name) for name in ("strategy", "joint", "use_pool", "seed", "audit", "costs")}
    options["losses"] = None if learner.losses is None else [(*pair, cost) for pair, cost in learner.losses.items()]
    field, history = learner.field, [(told.rows, told.labels) for told in learner.history]
    posterior = {"mean": field.mean, "variance": field.variance, "observed": field.rows}
    return {"pool": pool, "model": _model_fields(learner), "history": history, **options, **posterior}


def _first_version(state: dict[str, Any]) -> dict[str, Any]:
    """Older files do not say a version."""
    return {"version": 1, **state}


CAMPAIGN = Record(
    dict,
    {
        "pool": Record(dict, {"rows": whole(1), "features": whole(1), "digest": text()}, take=dict),
        "model": Record(
            dict,
            {
                "parameters": Named(plain()),
                "kernel": Maybe(Plain(lambda written: isinstance(written, dict), "a kernel")),
                "left_out": Named(text()),
                "shown": text(),
            },
            take=dict,
        ),
        "strategy": text(*STRATEGIES),
        "joint": flag(),
        "use_pool": Maybe(flag(), default=False),  # not in files of earlier versions
        "seed": whole(0, 2**31 - 1),
        "audit": InHeader(AUDITS),
        "history": Many(Row((Many(whole()), Many(plain())))),
        "mean": Numbers("seen", "outputs"),
        "variance": Numbers("seen", least=0.0),
        "observed": Numbers("observed", dtype=np.int64, below="seen"),
        "costs": Maybe(Numbers("rows"), default=None),
        "losses": Maybe(Many(Row((plain(), plain(), number(0.0)))), default=None),
    },
    version=1,
    name="ActiveLearner",
    upgrade=_first_version,
    take=_fields,
)
