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
    those before as if it had scored its mean, and three are drawn from the prior.
    """

    policy = staticmethod(probability_of_improvement)

    def ask(self, n: int) -> Array:
        if not len(self.boxes):
            return super().ask(n)
        model = self._fitted()
        candidates = super().ask(CANDIDATES)
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
        from saccade.localize.densities import Held

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

    def _best(self, model: GPRegressor) -> float:
        return float(model.predict(self._places(self.boxes)).max())

    def best_box(self) -> Array:
        return np.asarray(self.boxes[int(self._fitted().predict(self._places(self.boxes)).argmax())])


class PlainGPByEI(PlainGP):
    policy = staticmethod(expected_improvement)


class BoTorch(PlainGP):
    """BoTorch as it comes: SingleTaskGP fitted by evidence, seven of ten by q-LogNEI over candidates in turn."""

    def ask(self, n: int) -> Array:
        if not len(self.boxes):
            return AtRandom.ask(self, n)
        import torch
        from botorch.acquisition import qLogNoisyExpectedImprovement
        from botorch.optim import optimize_acqf_discrete

        torch.set_num_threads(1)
        torch.manual_seed(len(self.boxes))
        candidates = AtRandom.ask(self, CANDIDATES // 2)
        X = torch.tensor(self._unit(self.boxes))
        acquisition = qLogNoisyExpectedImprovement(self._model(X), X, prune_baseline=True)
        chosen, _ = optimize_acqf_discrete(acquisition, n - STOCHASTIC, torch.tensor(self._unit(candidates)))
        places = [int(np.abs(self._unit(candidates) - row).sum(axis=1).argmin()) for row in chosen.numpy()]
        return np.vstack([candidates[places], AtRandom.ask(self, STOCHASTIC)])

    def _unit(self, boxes: Array) -> Array:
        """BoTorch wants inputs from 0 to 1."""
        low, high = np.array([0.0, 0.0, -9.0, -2.0]), np.array([1.0, 1.0, 0.0, 2.0])
        d = 2 if self.known else 4
        return np.asarray((self._places(boxes) - low[:d]) / (high - low)[:d])

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
