"""From checked parameters to a posterior: what every estimator does between its targets and its calibration."""

from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from saccade._core.arrays import Array, RandomSource
from saccade._core.errors import InvalidParameter
from saccade._core.progress import report
from saccade._core.random_state import draw
from saccade.estimators.automatic import Automatic
from saccade.estimators.targets import Targets
from saccade.inference.approximations.by_name import Approximating, Method, resolve_method
from saccade.inference.likelihoods.infer import Inference
from saccade.inference.posterior.gp import GP
from saccade.inference.solving.regression import Solver, Solving
from saccade.inference.tuning.objective import Task
from saccade.inference.tuning.options import Tune, Tuning
from saccade.inference.tuning.search import tune
from saccade.kernels import Kernel
from saccade.kernels.engines import MEMORY, Engine
from saccade.kernels.gram import check_kind

Binning = Literal["quantile", "width"]
DEFAULT_SEED = 0  # of the random numbers inside when `random_state` is None


class Learned(NamedTuple):
    """What a fit found: the posterior, the noise, how they were tuned, and how X was coded."""

    gp: GP
    noise: float
    tuning: Tuning | None
    coding: tuple[int | None, Binning]  # levels and binning


@dataclass(frozen=True)
class Settings:
    """The checked parameters of an estimator, as `GPClassifier` has them; `estimator.settings()` makes them."""

    kernel: Kernel  # a fresh copy, whose "auto" is not resolved yet
    noise: float  # or the one to start from where it is learned
    automatic: Automatic  # which of kernel and noise the examples choose
    tune: Tune | None
    inference: Inference
    levels: int | None
    binning: Binning
    solver: Solver
    tol: float
    max_iter: int
    approximation: Method | Literal["auto"]
    variance: Method | Literal["auto"] | None
    inducing: Any
    variance_rank: int
    random_state: RandomSource
    engine: Engine = MEMORY  # where kernel matrices are held
    variance_as_mean: bool = False  # mean and variance have one approximation, instead of an exact mean
    compares: bool = True  # a low rank keeps examples apart that new ones are compared with
    calibrates: bool = False  # leave-one-out predictions of all examples are wanted

    def learn(self, X: Any, targets: Targets) -> Learned:
        """The posterior of checked rows X (n, d)."""
        Y, weight, seed = targets.columns(), targets.weight, self._seed()
        approximation = self._approximating(len(Y))
        report("encoding", 0.0)
        held = not approximation.streams or self.inference != "regression" or self.tune is not None
        options: dict[str, Any] = {"levels": self.levels, "binning": self.binning, "weight": weight, "seed": seed}
        options["engine"] = self.engine
        gram, noise, tuning = self.kernel.gram(X, **options, held=held), self.noise, None
        mean = targets.prior_mean()
        left = Y if mean is None else Y - mean.values
        if self.tune is not None:
            shape, more = targets.noise_diagonal(1.0), (weight, self.max_iter, seed, targets.scatter())
            gram, noise, tuning = tune(Task(self.kernel, gram, left, shape, noise, targets.losses(), *more), self.tune)
        chosen = self.automatic.choose(X, gram, left, targets.losses(), noise, seed)
        gram = gram if chosen.kernel is None else chosen.kernel.gram(X, **options)
        gp = GP.fit(
            gram,
            Y,
            targets.noise_diagonal(chosen.noise),
            weight=weight,
            mean=mean,
            inference=self.inference,
            solving=self._solving(chosen.noise, seed),
            approximation=approximation,
        )
        return Learned(gp, chosen.noise, tuning, (self.levels, self.binning))

    def learn_more(self, before: Learned, X: Any, targets: Targets, start: Array) -> Learned:
        """The posterior with the rows of X appended; `targets` are those of all rows."""
        Y, seed, gp = targets.columns(), self._seed(), before.gp
        keeps = before.tuning is not None or self.automatic.kernel  # what was learned stays
        kernel = gp.kernel if self.automatic.kernel else self.kernel
        check_kind(gp.gram, kernel)
        if kernel.has_tables and before.coding != (self.levels, self.binning):
            raise InvalidParameter(
                f"`levels` and `binning` must stay as in the first call, {before.coding}, got "
                f"{(self.levels, self.binning)}. Call fit instead."
            )
        learned = before.tuning is not None or self.automatic.noise
        noise = before.noise if learned else self.noise
        approximation, solving = self._approximating(len(Y)), self._solving(noise, seed)
        gp = replace(gp, inference=self.inference, solving=solving, approximation=approximation).extended(
            X,
            Y,
            targets.noise_diagonal(noise),
            targets.weight,
            mean=targets.prior_mean(),
            kernel=None if keeps else kernel,
            start=start,
        )
        return before._replace(gp=gp, noise=noise)

    def _seed(self) -> int:
        """The seed of every random number inside. None means `DEFAULT_SEED`, so that equal fits give equal answers."""
        return DEFAULT_SEED if self.random_state is None else draw(self.random_state, 2**31)

    def _approximating(self, n: int) -> Approximating:
        """Which approximations mean and variance use: by default the mean is exact."""
        if self.variance_as_mean:
            method = resolve_method(self.approximation, self.kernel.has_tables, n, self.solver != "cg")
            return Approximating(method, method, self.variance_rank, self.inducing)
        mean: Method = "exact" if self.approximation == "auto" else self.approximation
        return Approximating(mean, self.variance, self.variance_rank, self.inducing, self.compares)

    def _solving(self, noise: float, seed: int) -> Solving:
        """Without noise by a factor: conjugate gradients would not end."""
        return Solving("cholesky" if noise == 0 else self.solver, self.tol, self.max_iter, seed, self.calibrates)
