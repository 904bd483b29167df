"""What a campaign has learned: the posterior of the pool, and the classifier of the labels so far."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Self

import numpy as np
from sklearn.base import clone

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput
from saccade.active.answers import Label, label_array
from saccade.active.choosing import Beliefs, QueryRequest, beliefs_of_field, choose_rows
from saccade.active.cover import Cover
from saccade.active.models import Prior, beliefs_of, is_plain, kernel_and_noise
from saccade.active.pool import one_against_rest, pool_gram, pool_graph
from saccade.active.stopping import Audit
from saccade.active.strategies import Strategy
from saccade.estimators.classifier import GPClassifier
from saccade.estimators.neighbours import Neighbours
from saccade.inference.posterior.pool import PoolPosterior

Labels = Mapping[int, Label]  # by row of X


@dataclass(frozen=True, eq=False)
class PoolModel:
    """The rows that a model may ask about and learn from, and its posterior of them. It never changes.

    Examples
    --------
    >>> model = PoolModel.unlabelled(np.eye(3), np.array([2]), GPClassifier())
    >>> model.moved({0: "a", 1: "b", 2: "a"}).labelled
    array([0, 1])
    """

    X: Annotated[Any, "n, d"]  # the whole pool
    rows: Annotated[Array, "p"]  # of X that are not in the audit, ascending
    audited: frozenset[int]  # the other rows
    given: GPClassifier  # to fit
    prior: Prior  # its kernel and noise
    field: PoolPosterior  # of the p rows
    cover: Cover  # distances among them
    graph: Neighbours | None = None  # of rows that vote with a label or without one

    @classmethod
    def unlabelled(cls, X: Any, audit: Array, given: GPClassifier, seed: int | None = None) -> Self:
        """Before the first label. With a seed, which draws some of the rows, they vote in `fitted`."""
        rows = np.setdiff1d(np.arange(X.shape[0]), audit)
        if not rows.size:
            raise InvalidInput("No row of the pool is left besides the audit. Pass a smaller `audit`, or more rows.")
        nothing = np.zeros(0, np.int64)
        prior = kernel_and_noise(given, X, nothing, np.zeros(0), fit=True)  # without a label, X is not read
        coding = prior.levels, prior.binning, prior.engine
        gram = pool_gram(prior.kernel, X[rows], *coding)  # the copy of the rows is gone after
        field = PoolPosterior.unobserved(gram, prior.noise)
        graph = None if seed is None else pool_graph(gram, X, rows, seed)
        return cls(X, rows, frozenset(audit.tolist()), given, prior, field, Cover(field), graph)

    @property
    def labelled(self) -> Array:
        """The rows of X that the posterior knows the labels of."""
        return np.asarray(self.rows[self.field.rows])

    def known(self, labels: Labels) -> dict[int, Label]:
        """Those that the model learns from."""
        return {row: label for row, label in labels.items() if label is not None and row not in self.audited}

    def moved(self, labels: Labels) -> Self:
        """With these labels in place of all others; the posterior follows in closed form."""
        known, field = self.known(labels), self.field
        gone = np.flatnonzero([int(row) not in known for row in self.labelled])
        if gone.size:
            field = field.forgetting(gone)
        kept = self.rows[field.rows].tolist()
        seen = set(kept)
        new = np.array([row for row in known if row not in seen], np.int64)
        targets = label_array(known[int(row)] for row in [*kept, *new])
        places, columns = np.searchsorted(self.rows, new), one_against_rest(targets, np.unique(targets))
        return replace(self, field=field.observing(places, columns))

    def fitted(self, labels: Labels) -> GPClassifier:
        """The classifier of these labels, fitted."""
        found = len(set(labels.values()))
        if found < 2:
            raise InvalidInput(
                f"A model needs labels of two classes; so far there are labels of {found}. Tell more labels."
            )
        rows = np.fromiter(labels, np.int64)
        model: GPClassifier = clone(self.given).set_params(kernel=self.field.gram.kernel, noise=self.prior.noise)
        model.fit(self.X[rows], label_array(labels.values()))
        if self.graph is not None:
            model.take_votes(self.graph)
        return model

    def beliefs(self, labels: Labels, strategy: Strategy) -> Beliefs:
        """What is believed of the classes of all rows."""
        rows = self.field.rows
        told = label_array(labels[row] for row in self.labelled.tolist())
        if is_plain(self.given):  # as in `beliefs_of`, but the pool is not copied
            names, number = np.unique(told, return_inverse=True)
            return beliefs_of_field(self.field, number, names)
        return beliefs_of(clone(self.given), self.prior, self.field, self.X[self.rows], rows, told, strategy, True)

    def choose(self, labels: Labels, strategy: Strategy, wanted: QueryRequest) -> Array:
        """The next questions, as rows of X; none where all rows have an answer."""
        open_ = np.flatnonzero(~np.isin(self.rows, np.fromiter(labels, np.int64)))
        if not open_.size or not wanted.size:
            return self.rows[:0]
        found = choose_rows(self.field, self.beliefs(labels, strategy), open_, strategy, wanted, self.cover)[0]
        return np.asarray(self.rows[found])

    def looked(self, audit: Audit, labels: Labels, changed: bool) -> Audit:
        """The audit after the guesses of this model, changed or not, at audited rows were compared with the answers."""
        audit = audit.follows(changed, self.field.rows.size, lambda: self.believed(labels))
        in_turn = audit.in_turn(np.fromiter(labels, np.int64)).tolist()
        audited = np.array([row for row in in_turn if labels[row] is not None], np.int64)
        if not audit.looks_at(audited.size):
            return audit
        guesses, answers = self.guesses(labels, audited), label_array(labels[int(row)] for row in audited)
        right = guesses == answers if guesses.size else np.zeros(audited.size, bool)
        return audit.looked(np.asarray(right), self.field.rows.size)

    def believed(self, labels: Labels) -> float:
        """The accuracy that the model believes in: the mean of its largest probability over rows without a label."""
        left = np.setdiff1d(np.arange(self.rows.size), self.field.rows)
        if not left.size or self.field.mean.shape[1] < 2:
            return float(not left.size)
        some = left[:: -(-left.size // limits.BELIEVED)]
        return float(self.beliefs(labels, "auto").probability(some).max(axis=1).mean())

    def guesses(self, labels: Labels, rows: Array) -> Array:
        """The labels that the model of `labels` gives to audited rows of X; none while it knows no class."""
        known = self.known(labels)
        classes = np.unique(label_array(known.values()))
        if classes.size < 2:
            return np.resize(classes, rows.size) if classes.size else classes
        if not is_plain(self.given) or self.given.tune is not None or self.graph is not None:
            return np.asarray(self.fitted(known).predict(self.X[rows]))
        mean = self.field.gram.kernel(self.X[rows], self.X[self.labelled]) @ self.field.alpha
        return np.asarray(classes[mean.argmax(axis=1)])
