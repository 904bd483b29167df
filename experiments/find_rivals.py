"""Other ways to search for a box: at random, on a grid, the plain Gaussian process of S §12, and BoTorch's.

A search has `ask(n)` -> boxes and `tell(boxes, scores)`, as `saccade.localize.Localizer` has.
"""

from typing import Any

import numpy as np

from saccade import GPRegressor
from saccade._core.arrays import Array
from saccade.kernels import RBF
from saccade.localize import BoxPrior
from saccade.localize.boxes import to_coordinates
from saccade.scores.acquisition import expected_improvement, probability_of_improvement

CANDIDATES = 3000
NEAR = np.array(
    [0.02, 0.02, 0.2, 0.2]
)  # standard deviations of candidates around the best look: place, log size, shape
STARTS = 4  # of BoTorch's optimiser, for each box of a batch
STOCHASTIC = 3  # of a batch of 10 (S §12)
XI = 0.05  # S §12


class AtRandom:
    """Draws from the prior."""

    def __init__(self, prior: BoxPrior, seed: Any, noise: float) -> None:
        self.prior, self.rng, self.noise = prior, np.random.default_rng(seed), noise
        self.boxes, self.told = np.zeros((0, 4)), np.zeros(0)

    def ask(self, n: int) -> Array:
        return self.prior.sample(n, self.rng)

    def tell(self, boxes: Array, scores: Array) -> None:
        self.boxes, self.told = np.vstack([self.boxes, boxes]), np.append(self.told, scores)

    def best_box(self) -> Array:
        return np.asarray(self.boxes[self.told.argmax()])


class OnGrid(AtRandom):
    """Places in rows and columns, finer and finer, a level in random order; sizes are drawn from the prior."""

    def __init__(self, prior: BoxPrior, seed: Any, noise: float) -> None:
        super().__init__(prior, seed, noise)
        self.places = np.vstack([self.rng.permutation(self._level(2**k)) for k in range(1, 6)])

    def _level(self, side: int) -> Array:
        at = (np.arange(side) + 0.5) / side
        return np.column_stack([part.ravel() for part in np.meshgrid(at, at)])

    def ask(self, n: int) -> Array:
        u = self.prior.draw(n, self.rng)
        first = len(self.boxes)
        u[:, :2] = self.places[first : first + n]
        return self.prior.boxes(u)


class PlainGP(AtRandom):
    """S §12 as printed: a squared-exponential GP over coordinates, refitted by evidence, PI or EI with ξ = 0.05.

    The first batch is drawn from the prior. Of the others seven are the best candidates one by one, each conditioned on
    those before as if it had scored its mean, and three are drawn from the prior. Candidates are draws from the prior
    and boxes around the best look.
    """

    policy = staticmethod(probability_of_improvement)

    def ask(self, n: int) -> Array:
        if not len(self.boxes):
            return super().ask(n)
        model = self._fitted()
        candidates = np.vstack([super().ask(CANDIDATES), self._near(model, CANDIDATES // 3)])
        U, taken = self._places(candidates), list[int]()
        for _ in range(n - STOCHASTIC):
            mean, std = model.predict(U, return_std=True)
            score = self.policy(mean, std**2, self._best(model), XI)
            score[taken] = -np.inf
            taken.append(int(score.argmax()))
            model.partial_fit(U[taken[-1:]], mean[taken[-1:]])
        return np.vstack([candidates[taken], super().ask(STOCHASTIC)])

    def _places(self, boxes: Array) -> Array:
        return np.asarray(to_coordinates(boxes, self.prior.bounds)[:, : 2 if self.known else 4])

    @property
    def known(self) -> bool:
        from saccade.localize.priors.densities import Held

        return isinstance(self.prior.density, Held)

    def _fitted(self) -> GPRegressor:
        X = self._places(self.boxes)
        scales = np.array([0.1, 0.1, 0.5, 0.5])[: X.shape[1]]
        noise = max(self.noise, 1e-6)
        kernel = RBF(length_scale=scales, amplitude=0.1)
        model = GPRegressor(kernel, noise=noise, normalize_y=False, mean=0.05, solver="cholesky", variance="exact")
        grid = {
            "length_scale": [(scales * factor).tolist() for factor in (0.5, 1.0, 2.0)],
            "amplitude": [0.03, 0.1, 0.3],
        }
        return model.set_params(tune=grid).fit(X, self.told).set_params(tune=None)

    def _near(self, model: GPRegressor, count: int) -> Array:
        u = to_coordinates(self.boxes[[int(model.predict(self._places(self.boxes)).argmax())]], self.prior.bounds)
        u = u + self.rng.standard_normal((count, 4)) * (NEAR * [1, 1, not self.known, not self.known])
        return self.prior.boxes(np.hstack([np.clip(u[:, :2], 0.0, 1.0), u[:, 2:]]))

    def _best(self, model: GPRegressor) -> float:
        return float(model.predict(self._places(self.boxes)).max())

    def best_box(self) -> Array:
        return np.asarray(self.boxes[int(self._fitted().predict(self._places(self.boxes)).argmax())])


class PlainGPByEI(PlainGP):
    policy = staticmethod(expected_improvement)


class BoTorch(PlainGP):
    """BoTorch as it comes: SingleTaskGP fitted by evidence, seven of ten by q-LogNEI and its optimiser, in turn.

    The optimiser starts from the best draws of the prior.
    """

    low, high = np.array([0.0, 0.0, -9.0, -2.0]), np.array([1.0, 1.0, 0.0, 2.0])

    def ask(self, n: int) -> Array:
        if not len(self.boxes):
            return AtRandom.ask(self, n)
        import torch
        from botorch.acquisition import qLogNoisyExpectedImprovement
        from botorch.optim import optimize_acqf

        torch.set_num_threads(1)
        torch.manual_seed(len(self.boxes))
        X, taken = torch.tensor(self._unit(self.boxes)), list[Any]()
        acquisition = qLogNoisyExpectedImprovement(self._model(X), X, prune_baseline=True)
        limits = torch.tensor(np.array([np.zeros(X.shape[1]), np.ones(X.shape[1])]))
        for _ in range(n - STOCHASTIC):
            drawn = torch.tensor(self._unit(AtRandom.ask(self, CANDIDATES // 6))).clamp(0.0, 1.0)[:, None]
            with torch.no_grad():
                starts = drawn[acquisition(drawn).topk(STARTS).indices]
            options = {"maxiter": 50}
            found, _ = optimize_acqf(acquisition, limits, 1, STARTS, options=options, batch_initial_conditions=starts)
            taken.append(found.detach())
            acquisition.set_X_pending(torch.cat(taken))
        return np.vstack([self._of_unit(torch.cat(taken).numpy()), AtRandom.ask(self, STOCHASTIC)])

    def _of_unit(self, unit: Array) -> Array:
        d = unit.shape[1]
        u = np.tile(to_coordinates(self.boxes[:1], self.prior.bounds), (len(unit), 1))  # with the size, if it is known
        u[:, :d] = self.low[:d] + unit * (self.high - self.low)[:d]
        return self.prior.boxes(u)

    def _unit(self, boxes: Array) -> Array:
        """BoTorch wants inputs from 0 to 1."""
        d = 2 if self.known else 4
        return np.asarray((self._places(boxes) - self.low[:d]) / (self.high - self.low)[:d])

    def _model(self, X: Any) -> Any:
        import torch
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import SingleTaskGP
        from gpytorch.mlls import ExactMarginalLogLikelihood

        y = torch.tensor(self.told)[:, None]
        noise = torch.full_like(y, max(self.noise, 1e-6))
        model = SingleTaskGP(X, y, noise)
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        return model

    def best_box(self) -> Array:
        import torch

        X = torch.tensor(self._unit(self.boxes))
        model = self._model(X)
        with torch.no_grad():
            return np.asarray(self.boxes[int(model.posterior(X).mean.argmax())])


RIVALS = {
    "at random": AtRandom,
    "on a grid": OnGrid,
    "plain GP, PI": PlainGP,
    "plain GP, EI": PlainGPByEI,
    "BoTorch": BoTorch,
}
