"""Curves of a strategy over many seeds: the rate on the test part after each batch of questions.

With a cache folder the questions and rates of every seed are kept in ask_curves/, a file for each task, strategy and
batch size. A run that was stopped goes on where it was. Delete the file of a strategy after it was changed.
"""

import json
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import ask_rivals as rivals
import numpy as np
from ask_campaign import Asker, Judge, campaign, curve, judge, judge_logistic
from ask_tasks import SPECS, Source, Task
from common import Array, arguments

from saccade.active import ActiveLearner
from saccade.active.strategies import Strategy


def curve_arguments(doc: str | None, tasks: Iterable[str]) -> ArgumentParser:
    """--data, --runs and --tasks beside --cache and --out, for the scripts that compare curves."""
    parser = arguments(doc)
    parser.add_argument("--data", type=Path, default=None, help="the folder that has cifar10/ and fashion-mnist/")
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--tasks", nargs="*", default=list(tasks), help=f"some of {list(SPECS)}")
    return parser


LONGER = {"random": 2.0, "margin": 1.5}  # times the budget: these are cheap, and others are compared with their end


def ours(strategy: Strategy, joint: bool = True) -> Asker:
    """A strategy of saccade.active: a learner without audit, told the answers to its last questions."""
    kept: list[ActiveLearner] = []

    def ask(task: Task, labelled: Array, batch: int, seed: int) -> Array:
        if not len(labelled):
            kept[:] = [ActiveLearner(task.X, strategy=strategy, audit=0.0, joint=joint, random_state=seed)]
        else:
            kept[0].tell(labelled[-batch:], task.y[labelled[-batch:]])
        return kept[0].ask(batch)

    return ask


ASKERS: dict[str, Asker] = {
    "auto": ours("auto"),
    "medoids": ours("medoids"),
    "auto, top-k": ours("auto", joint=False),
    "least margin": ours("least-margin"),
    "least margin, top-k": ours("least-margin", joint=False),
    "random": rivals.random,
    "margin": rivals.margin,
    "BADGE": rivals.badge,
    "TypiClust": rivals.typiclust,
    "MaxHerding": rivals.maxherding,
    "CoreSet": rivals.coreset,
    "DropQuery": rivals.dropquery,
    "BADGE, logistic": rivals.badge_logistic,
    "DropQuery, logistic": rivals.dropquery_logistic,
}
JUDGED_AGAIN = {"random, logistic": "random", "TypiClust, logistic": "TypiClust", "CoreSet, logistic": "CoreSet"}


class Curves:
    """Measures what is asked for, once."""

    def __init__(self, data: Path | None, cache: Path | None) -> None:
        self.data, self.cache = data, cache
        self._sources: dict[str, Source] = {}
        self._found: dict[str, dict[str, Any]] = {}

    def task(self, name: str, seed: int) -> Task:
        spec = SPECS[name]
        if spec.source not in self._sources:
            self._sources = {spec.source: Source(spec.source, self.data, self.cache)}  # one at a time: they are large
        return self._sources[spec.source].draw(spec, seed)

    def full(self, name: str, runs: int, judge: Judge = judge) -> list[float]:
        """The rate with the whole pool labelled, for each seed."""
        kind = "" if judge is not judge_logistic else ", logistic"
        return self._kept(f"{name}, full{kind}", runs, lambda seed: ([], [judge(*_all(self.task(name, seed)))]))[:, 0]

    def rates(self, name: str, strategy: str, runs: int, batch: int, budget: int | None = None) -> Array:
        """(runs, rounds): after each batch, for the seeds from 0 on."""
        budget = budget or int(LONGER.get(strategy.removesuffix(", logistic"), 1.0) * SPECS[name].budget)

        def measured(seed: int) -> tuple[list[int], list[float]]:
            task = self.task(name, seed)
            if strategy in JUDGED_AGAIN:
                self.rates(name, JUDGED_AGAIN[strategy], seed + 1, batch, budget)
                order = np.array(self._found[_key(name, JUDGED_AGAIN[strategy], batch)]["orders"][seed])
            else:
                order = campaign(task, ASKERS[strategy], budget, batch, seed)
            by = judge_logistic if strategy.endswith(", logistic") else judge
            return order.tolist(), curve(task, order, batch, by)

        return self._kept(_key(name, strategy, batch), runs, measured)

    def _kept(self, key: str, runs: int, measure: Callable[[int], tuple[list[int], list[float]]]) -> Array:
        file = None if self.cache is None else self.cache / "ask_curves" / f"{key}.json"
        if key not in self._found and file is not None and file.is_file():
            self._found[key] = json.loads(file.read_text())
        found = self._found.setdefault(key, {"orders": [], "rates": [], "seconds": 0.0})
        while len(found["rates"]) < runs:
            start = time.perf_counter()
            order, rates = measure(len(found["rates"]))
            found["orders"].append(order)
            found["rates"].append(rates)
            found["seconds"] += time.perf_counter() - start
            if file is not None and (len(found["rates"]) % 5 == 0 or len(found["rates"]) == runs):
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(json.dumps(found))
        rates = found["rates"][:runs]
        shortest = min(len(some) for some in rates)  # pools of different sizes end at different rounds
        return np.array([some[:shortest] for some in rates])


def _key(name: str, strategy: str, batch: int) -> str:
    return f"{name}, {strategy}, batches of {batch}"


def _all(task: Task) -> tuple[Task, Array]:
    return task, np.arange(len(task.y))
