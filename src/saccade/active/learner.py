"""`ActiveLearner`: a pool, the labels so far, and a model that knows which question is worth most."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import numpy as np
from sklearn.base import clone

from saccade._core.arrays import Array
from saccade._core.blas import one_blas_thread
from saccade._core.checks import check_choice, check_costs, check_count, check_flag, check_share
from saccade._core.errors import InvalidInput, InvalidParameter
from saccade._core.random_state import seed_of
from saccade.active.answers import Label, Told
from saccade.active.choosing import QueryRequest
from saccade.active.losses import check_losses
from saccade.active.one_at_a_time import OneAtATime, alone
from saccade.active.pool import check_pool
from saccade.active.pool_model import PoolModel
from saccade.active.state_file import load, restored, save
from saccade.active.stopping import Accuracy, Audit, reserve
from saccade.active.strategies import STRATEGIES, Strategy
from saccade.active.target_audit import SHARE, TargetAudit
from saccade.estimators.classifier import GPClassifier
from saccade.inference.posterior.pool import PoolPosterior


class ActiveLearner(OneAtATime):
    """Ask for labels where they are worth most, learn from each answer at once, and know when to stop.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
        The pool. It is kept, not copied; do not change it.
    model : GPClassifier, optional
        The classifier that learns; a clone of it is used. Its kernel and noise are set once on the pool and choose the
        questions; what `tune` learns from labels is used by `model` alone. None: GPClassifier().
    strategy : str
        A name as for `query`, except "novel" and "doubtful".
    target : float or None
        An accuracy to be shown, such as 0.9. Audit questions then come late: when the model believes that it is there.
        The probability that `should_stop` ever says so of a model below the target is at most 5 %. None: audit
        questions are spread over the campaign, and with probability 95 % no interval of `accuracy` ever misses.
    audit : float, optional
        Share of the pool that is drawn at random before the first question to measure the accuracy, at most 0.5. The
        model does not learn from these rows until `fit`. Without a target, it is the share of questions too. Default:
        0.1, and 0.3 with a target. 0 asks none, and then nothing is known about the accuracy.
    joint : bool
        Choose the questions of a batch so that they do not repeat each other.
    costs : array of shape (n,) or None
        The positive cost of each label: the score per cost decides.
    losses : dict, optional
        For strategy="value", as for `query`: the cost of saying one class where it is another. If `costs` are given,
        `ask` returns no row as soon as no question is worth its cost.
    random_state : int, RandomState, Generator or None
        Seed of the random choices. None means the same random numbers every time.
    use_pool : bool
        Let rows without a label vote in `model` and `fit`, as `GPClassifier(unlabelled=-1)` does: better with 25 to 100
        labels where rows of a class lie together. The questions stay the same. The audited rows have no vote.

    Attributes
    ----------
    audit : Audit
        The rows that were set apart, and the looks so far.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> learner = ActiveLearner(X)
    >>> for _ in range(5):
    ...     rows = learner.ask(20)
    ...     learner.tell(rows, y[rows])
    >>> learner
    ActiveLearner(1797 rows, 90 labels of 10 classes, 10 audits)
    >>> learner.model.score(X, y) > 0.8
    True
    """

    def __init__(
        self,
        X: Any,
        model: GPClassifier | None = None,
        *,
        strategy: Strategy = "auto",
        target: float | None = None,
        audit: float | None = None,
        joint: bool = True,
        costs: Any = None,
        losses: Any = None,
        random_state: Any = None,
        use_pool: bool = False,
    ) -> None:
        check_choice("strategy", strategy, tuple(STRATEGIES))
        if STRATEGIES[strategy].one_class:
            raise InvalidParameter(f'strategy="{strategy}" is for OneClassGP: use `query` with one.')
        self.strategy, self.joint = strategy, check_flag("joint", joint)
        self.use_pool = check_flag("use_pool", use_pool)
        self.seed, self.X, self._files = seed_of(random_state), check_pool(X), frozenset[str]()
        self.given = clone(GPClassifier() if model is None else model)
        if not isinstance(self.given, GPClassifier):
            raise InvalidParameter(f"`model` must be a GPClassifier, got {self.given!r}. `query` takes others.")
        self.costs = None if costs is None else check_costs(costs, self.rows_in_pool)
        self.losses = check_losses(losses, strategy)
        share = (0.1 if target is None else SHARE) if audit is None else audit
        share = check_share("audit", share, 0.5, "Pass 0.1 for one question in ten, 0 for no audit.")
        rows = reserve(np.arange(self.X.shape[0]), share, np.random.default_rng(self.seed))
        self._begin(Audit(rows, share) if target is None else TargetAudit.enough(rows, share, target))

    def _begin(self, audit: Audit) -> None:
        """Start without labels; questions come from the rows that are not in the audit."""
        self.audit, self._labels, self._told = audit, dict[int, Label](), tuple[Told, ...]()
        self.pool_model = PoolModel.unlabelled(self.X, audit.rows, self.given, self.seed if self.use_pool else None)

    @property
    def field(self) -> PoolPosterior:
        """The posterior of the rows that are not in the audit."""
        return self.pool_model.field

    @alone
    def __repr__(self) -> str:
        known, n = self.pool_model.known(self._labels), self.X.shape[0]
        audits = int(self.is_audit(list(self._labels)).sum())
        return f"ActiveLearner({n} rows, {len(known)} labels of {self.classes.size} classes, {audits} audits)"

    @property
    def target(self) -> float | None:
        """The accuracy to be shown, if there is one."""
        return self.audit.target if isinstance(self.audit, TargetAudit) else None

    @property
    def rows_in_pool(self) -> int:
        """Number of rows of X."""
        return int(self.X.shape[0])

    @property
    def labels(self) -> dict[int, Label]:
        """Every answer so far by its row, the audited ones too; None where nobody could tell."""
        return dict(self._labels)

    @property
    def history(self) -> tuple[Told, ...]:
        """Every `tell` so far, in order."""
        return self._told

    @property
    @alone
    def classes(self) -> Array:
        """The labels known to the model, ascending."""
        known = self.pool_model.known(self._labels)
        return np.unique(np.asarray(list(known.values()))) if known else np.zeros(0)

    @property
    @alone
    def model(self) -> GPClassifier:
        """The classifier of the labels so far, without those of the audit: the one that `accuracy` is about."""
        return self.pool_model.fitted(self.pool_model.known(self._labels))

    @alone
    def fit(self) -> GPClassifier:
        """The classifier of all labels, those of the audit too: for use after the last question. It needs two classes.

        Returns
        -------
        GPClassifier
            Fitted.
        """
        return self.pool_model.fitted({row: label for row, label in self._labels.items() if label is not None})

    # ---- asking

    @alone
    def ask(self, k: int = 1) -> Annotated[Array, "k"]:
        """The next k questions. They stay the same until something is told.

        Audit questions are among them (`is_audit`). Do not show a guess of the model with these.

        Parameters
        ----------
        k : int
            Number of questions.

        Returns
        -------
        array of shape (k,)
            Row numbers of X; fewer where no more are left or worth their cost, and an error where none is left.
        """
        k = check_count("k", k, "The default is 1.")
        asked, known = sum(len(told.rows) for told in self._told), np.fromiter(self._labels, np.int64)
        due = self.audit.due(asked, k, int(self.is_audit(known).sum()))
        catch_up = int(np.ceil(2.0 * self.audit.share * k))  # many labels told unasked: not all audits at once
        audits = self.audit.next_rows(due if self.target else min(due, catch_up), known)
        if self.target and audits.size:
            return audits
        cost = None if self.costs is None else self.costs[self.pool_model.rows]
        wanted = QueryRequest(k - audits.size, self.joint, cost, seed=self.seed + self._rounds(), losses=self.losses)
        with one_blas_thread():
            found = self.pool_model.choose(self._labels, self.strategy, wanted)
        if not found.size and not audits.size and np.isin(self.pool_model.rows, known).all():
            audits = self.audit.next_rows(k, known)
            if not audits.size:
                raise InvalidInput(f"All {self.X.shape[0]} rows of the pool were asked: there is nothing left to ask.")
        places = np.random.default_rng([self.seed, asked]).permutation(found.size + audits.size)[: audits.size]
        return np.asarray(np.insert(found, np.sort(places) - np.arange(audits.size), audits))

    def _rounds(self) -> int:
        """Number of answers that a question depends on: with a target, not of those to the audit alone."""
        return sum(self.target is None or not self.is_audit(told.rows).all() for told in self._told)

    def is_audit(self, rows: Any) -> Array:
        """Which of these rows are audit questions: show no guess of the model with them.

        Parameters
        ----------
        rows : array of int
            Row numbers of X.

        Returns
        -------
        array of bool
            As many as rows.
        """
        return np.isin(np.asarray(rows), self.audit.rows)

    # ---- telling

    @alone
    def tell(self, rows: Any, labels: Any) -> None:
        """Tell the labels of rows.

        Rows that were never asked are welcome, new classes too; a row told again has its new label. All or nothing: an
        error leaves everything as it was.

        Parameters
        ----------
        rows : int or array of shape (b,)
            Row numbers of X.
        labels : label or array of shape (b,)
            All text or all whole numbers; None for a row that nobody can label, which is not asked again.
        """
        told = Told.of(rows, labels, self.rows_in_pool, self._labels)
        self._move(told.added_to(self._labels), (*self._told, told))

    @alone
    def undo(self) -> Told:
        """Take back the last `tell`. If it led to a look of the audit, that look stays.

        Returns
        -------
        Told
            The `rows` and `labels` of that call, and what they were `before`.
        """
        if not self._told:
            raise InvalidInput("Nothing was told yet, so there is nothing to undo.")
        last = self._told[-1]
        self._move(last.taken_from(self._labels), self._told[:-1])
        return last

    def _move(self, labels: dict[int, Label], told: tuple[Told, ...]) -> None:
        """Replace the labels: the posterior follows in closed form, and then all changes in one step."""
        model, before = self.pool_model.moved(labels), self.pool_model.known(self._labels)
        audit = model.looked(self.audit, labels, changed=model.known(labels) != before)
        vars(self).update(pool_model=model, audit=audit, _labels=labels, _told=told)

    # ---- stopping

    def accuracy(self) -> Accuracy:
        """The accuracy of `model` on new rows: an estimate from the audit, with an interval.

        The interval holds however often it is looked at.

        Returns
        -------
        Accuracy
            `estimate`, `low`, `high`, and every look so far in `curve`. Before the first audited row the estimate is
            NaN and the interval [0, 1]. With a `target`, `curve` has the last look at each model that was tested.
        """
        return self.audit.accuracy()

    def should_stop(self, target: float | None = None) -> bool:
        """Whether the accuracy is shown to be at least `target`: the whole interval lies above.

        Parameters
        ----------
        target : float, optional
            Between 0 and 1. Default: the target of the learner.

        Returns
        -------
        bool
            True if `accuracy().low` is at least the target.
        """
        target = self.target if target is None else target
        if target is None:
            raise InvalidParameter("`target` is missing. Pass an accuracy such as 0.9, here or to ActiveLearner.")
        return self.accuracy().reaches(target)

    # ---- files

    @alone
    def save(self, path: Any) -> None:
        """Write the campaign to one file: every answer, and all that the next question depends on, but not the pool.

        An existing file is replaced only if this learner read or wrote it in its present form. Otherwise it may hold
        answers of somebody else.

        Parameters
        ----------
        path : path
            The file.
        """
        self._files |= {save(self, path, self._files)}

    @classmethod
    def load(cls, path: Any, X: Any, model: GPClassifier | None = None) -> ActiveLearner:
        """Go on with a saved campaign on its pool, which may have gained rows at its end.

        New rows are audited too: the accuracy is that of the whole pool, and must be shown again.

        Parameters
        ----------
        path : path
            What `save` wrote.
        X : array or sparse matrix of shape (n, d)
            The pool.
        model : GPClassifier, optional
            As it was at the start. It is needed only if a file cannot keep its kernel or parameters.

        Returns
        -------
        ActiveLearner
            It asks the same next question if the pool has not grown.

        Raises
        ------
        InvalidInput
            If the file belongs to another pool.
        ModelFileError
            If the file is damaged, or `model` is needed.
        """
        return load(cls, path, check_pool(X), model)

    def resume(self, seed: int, audit: Audit, history: Any, tensors: dict[str, Array] | None, file: str) -> None:
        """Become the campaign of a file; `load` calls it.

        Parameters
        ----------
        seed : int
            Seed of the random choices.
        audit : Audit
            The rows set apart, and the looks so far.
        history : list of (rows, labels)
            Every `tell`, in order.
        tensors : dict of arrays, or None
            Mean and variance of the posterior; None where the pool has grown.
        file : str
            Digest of the file, so that `save` may replace it.
        """
        self.seed = seed
        self._begin(audit)
        labels, every = dict[int, Label](), list[Told]()
        for rows, values in history:
            every.append(Told.of(rows, values, self.rows_in_pool, labels))
            labels = every[-1].added_to(labels)
        self._move(labels, tuple(every))
        if tensors is not None:
            self.audit, field = audit, restored(self.field, tensors)
            self.pool_model = replace(self.pool_model, field=field)
        self._files = frozenset({file})
