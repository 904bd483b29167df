"""Support vector data description: the smallest ball around the examples (O §4)."""

import warnings
from copy import copy
from dataclasses import KW_ONLY, dataclass, field
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from saccade._core import limits
from saccade._core.arrays import Array, FilePath
from saccade._core.checks import check_count, check_levels, check_positive, check_rows
from saccade._core.chunks import batches
from saccade._core.fields import number
from saccade._core.progress import report
from saccade.estimators.model_writing import save, save_with_examples
from saccade.estimators.on_engine import OnEngine
from saccade.estimators.outliers import Outliers
from saccade.estimators.part import Part, part_record
from saccade.inference.posterior.compressed import Compressed
from saccade.kernels import HIK, Kernel
from saccade.kernels.base import check_kernel
from saccade.kernels.gram import Gram, TabledGram
from saccade.operators.base import Dense, Operator
from saccade.operators.tables import GridTables, PiecewiseTables
from saccade.solvers.smo import SVDDResult, check_nu, solve_svdd

ROUNDING = 1e-12  # of the largest k(x, x): an example on the surface counts as inside


@dataclass(frozen=True)
class Ball(Part):
    """The ball that was found.

    >>> Ball(1.0, 2.0, -4.0).to_state()
    {'centre_norm2': 1.0, 'radius': 2.0, 'offset': -4.0}
    """

    centre_norm2: float  # ‖c‖² of its centre c
    radius: float
    offset: float  # −R², less what rounding and `tol` may do to squared distances


Ball.record = part_record(Ball, {"centre_norm2": number(0.0), "radius": number(0.0), "offset": number(most=0.0)})


@dataclass(eq=False, repr=False)
class SVDD(Outliers, OnEngine):
    """The smallest ball in feature space that holds all but a share ν of the examples; what is outside is novel.

    Its centre is c = Σ α_i Φ(x_i) with α ≥ 0, Σα = 1, and only the support vectors, on the surface or outside, have an
    α above 0. Where k(x, x) is constant the ball is the half-space of scikit-learn's OneClassSVM with the same ν.

    Parameters
    ----------
    kernel : Kernel, default HIK()
        HIK scores from tables in constant time and keeps no example; another kernel keeps the support vectors.
    nu : float above 0, at most 1
        ν: no more than this share of the training examples is outside, and at least this share are support vectors.
    levels : int or None
        Levels per dimension for HIK: None is exact, a number up to 255 makes smaller tables.
    tol : float
        When to stop: squared distances are right up to `tol` times the mean squared distance from the mean.
    max_iter : int
        Most moves of weight between two examples. A few hundred are usual.

    Attributes
    ----------
    ball_ : Ball
        Centre and radius.
    support_ : array of shape (n_support,)
        Which training examples have an α above 0.
    dual_coef_ : array of shape (n_support,)
        Their α.
    kernel_ : Kernel
        The kernel with a number for every "auto".
    n_iter_, residual_, converged_ : int, float, bool
        Moves that were made, how far squared distances may be off, and whether that is as good as `tol` asks.

    Examples
    --------
    >>> X = [[0.0, 1.0], [0.2, 0.8], [0.1, 0.7], [0.1, 1.0], [0.9, 0.1]]
    >>> SVDD(nu=0.4).fit(X).predict([[0.1, 0.9], [1.0, 0.0]])
    array([ 1, -1])
    """

    kernel: Kernel | None = None
    _: KW_ONLY
    nu: float = 0.5
    levels: int | None = None
    tol: float = 1e-6
    max_iter: int = 10_000_000

    kernel_: Kernel = field(init=False)
    n_features_in_: int = field(init=False)
    feature_names_in_: Array = field(init=False)
    noise_ = 0.0  # what a model file has a place for and a ball has not
    tuning_ = None
    ball_: Ball = field(init=False)
    centre_: Compressed | None = field(init=False, default=None)  # c as tables
    support_vectors_: Annotated[Any, "n_support, d"] = field(init=False, default=None)  # where there are no tables
    file_parts: ClassVar[dict[str, type[Part]]] = {"ball_": Ball}
    settable: ClassVar[tuple[str, ...]] = ()
    file_tables: ClassVar[str] = "centre_"
    n_outputs_ = 1

    def _check_parameters(self) -> Kernel:
        check_nu(self.nu)
        check_levels(self.levels)
        check_positive("tol", self.tol, "The default is 1e-6.")
        check_count("max_iter", self.max_iter, "The default is 10000000.")
        fresh: Kernel = clone(HIK() if self.kernel is None else check_kernel("kernel", self.kernel))
        return fresh

    def fit(self, X: Any, y: Any = None) -> Self:
        new = copy(self)  # a failure or an interruption leaves this estimator as it was
        kernel = new._check_parameters()
        X = check_rows(new, X, reset=True)
        report("encoding", 0.0)
        held = X.shape[0] <= limits.SVDD_DENSE_UP_TO
        gram = kernel.gram(X, levels=self.levels, held=held, engine=self.engine)
        new.kernel_ = gram.kernel
        new._find(gram, X)
        self.__dict__ = new.__dict__
        return self

    def _find(self, gram: Gram, X: Any) -> None:
        """The ball, and what scores take: tables, or the support vectors."""
        K, submatrix = Dense(gram.to_dense()) if gram.in_memory else gram, None
        if isinstance(gram, TabledGram):  # products are cheap, columns are not; exact codes are X itself
            submatrix = gram.block if self.levels is not None else lambda some: gram.kernel(X[some])
        ball = solve_svdd(K, self.nu, submatrix=submatrix, tol=float(self.tol), max_iter=int(self.max_iter))
        self._keep(ball, K)
        if isinstance(gram, TabledGram):
            self.centre_ = Compressed(gram.kernel, gram.tables(ball.alpha[:, None]), None, gram.tops)
            self.support_vectors_ = None
        else:
            self.centre_, self.support_vectors_ = None, gram.rows(self.support_)

    def _keep(self, ball: SVDDResult, K: Operator) -> None:
        self.support_ = np.flatnonzero(ball.alpha)
        self.dual_coef_ = ball.alpha[self.support_]
        known_to = ball.gap if ball.converged else 0.0  # squared distances: the surface is as thick
        offset = -(ball.radius2 + known_to + ROUNDING * float(K.diag().max()))
        self.ball_ = Ball(ball.centre_norm2, float(np.sqrt(ball.radius2)), offset)
        self.n_iter_, self.residual_, self.converged_ = max(ball.iterations, 1), ball.gap, ball.converged
        if not ball.converged:
            warnings.warn(
                f"SVDD stopped after {ball.iterations} moves, with squared distances that are right up to "
                f"{ball.gap:.2g} only. Raise `max_iter` (now {self.max_iter}) or `tol` (now {self.tol:g}).",
                ConvergenceWarning,
                stacklevel=4,
            )

    def score_samples(self, X: Any) -> Annotated[Array, "n"]:
        """Squared distance from the centre, negative: −‖Φ(x) − c‖², higher for more normal examples.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
            New examples.

        Returns
        -------
        array of shape (n,)
            −(k(x, x) − 2 k*ᵀα + αᵀKα).
        """
        check_is_fitted(self)
        X = check_rows(self, X, reset=False)
        similarity, own = self._similarities(X)
        return -np.maximum(own - 2.0 * similarity + self.ball_.centre_norm2, 0.0)

    def _similarities(self, X: Any) -> tuple[Array, Array]:  # (n,), (n,)
        """k*ᵀα, how like the centre every row of checked X is, and k(x, x)."""
        if self.centre_ is not None:
            return self.centre_.mean(X)[:, 0], self.kernel_.diag(X)
        X = X.astype(np.float64)
        some = batches(X.shape[0], max(1, limits.KERNEL_VALUES_AT_ONCE // self.support_.size))
        parts = [self.kernel_(X[rows], self.support_vectors_) @ self.dual_coef_ for rows in some]
        return np.concatenate(parts), self.kernel_.diag(X)

    def save(self, path: FilePath, *, features: Any = None) -> None:
        """Write the model to one file, as `GPClassifier.save`; `saccade.load` reads it.

        Of a kernel that has no tables it keeps the support vectors, which are training rows, and a warning says so.

        Parameters
        ----------
        path : path
            The file.
        features : transformer or Pipeline of saccade.features, optional
            What made X.
        """
        check_is_fitted(self)
        if self.centre_ is not None:
            save(self, path, features)
            return
        why = f"{type(self.kernel_).__name__} has no tables"
        arrays: dict[str, Array | None] = {"dual": self.dual_coef_, "support": self.support_}
        found = {"n_iter": self.n_iter_, "residual": self.residual_, "converged": self.converged_}
        save_with_examples(self, path, self.support_vectors_, arrays, features, why, self.ball_.to_state() | found)

    @property
    def radius_(self) -> float:
        """Radius R, not R²."""
        return self.ball_.radius

    @property
    def offset_(self) -> float:
        """Threshold −R², less 1e-12 of the largest k(x, x) for rounding: `decision_function` is the score less this."""
        return self.ball_.offset

    @property
    def tables_(self) -> PiecewiseTables | GridTables | None:
        """The mean k*ᵀα as tables, where the kernel has some."""
        return None if self.centre_ is None else self.centre_.tables

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
