"""Posterior means for labels that are signs of f plus noise, by Newton's method: the step that Laplace and EP share.

EP at rest is a convex problem for the means f as long as the variances v of the cavities are held. With β and γ the
slope and minus curvature of log ∫Φ(y f/σ) N(f; μ, v) df in the cavity's mean μ, it has f = Kα, α = β and f = μ + vα.
Newton's step from f is a regression on targets μ + β/γ with noise 1/γ − v; for v = 0 it is that of Laplace. The mean f
says where μ is: with z = y μ/√(v + σ²), κ = v/(v + σ²) and r = φ/Φ, F(z) = z + κ r(z) = y f/√(v + σ²), and F rises and
is convex.
"""

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput
from saccade.inference.likelihoods.draft import Drafted
from saccade.inference.likelihoods.probit import hazard
from saccade.inference.likelihoods.sites import Regression, Steps
from saccade.inference.solving.closed_form import leave_one_out
from saccade.inference.solving.regression import Solution

HALVINGS = 30
ROOT_STEPS = 100  # Newton's steps to z; ten are many
SLOWED = 0.5  # share of the slope along a step that may be left, with the other sign, at its end
ROUNDING = 1e-12
LIGHT = 1e-7  # share of the largest noise of a site, ten times k(x, x) + σ², from which an example says little
ROUGH = 0.1  # change of a mean, by `width`, up to which what the solver leaves of it may be taken for rest


@dataclass(frozen=True)
class Labels:
    """Labels ±1 that are the sign of f plus noise, each seen with a cavity of known variance."""

    Y: Annotated[Array, "n, m"]  # ±1
    noise: Annotated[Array, "n, m"]  # σ²
    variance: Annotated[Array, "n, m"]  # of the cavities; 0 for Laplace
    copies: Annotated[Array, "n, 1"]  # how many equal copies each example stands for
    flattest: float  # the largest noise of a site

    def columns(self, some: Array) -> "Labels":
        """Those of some columns."""
        return replace(self, Y=self.Y[:, some], noise=self.noise[:, some], variance=self.variance[:, some])

    @property
    def width(self) -> Annotated[Array, "n, m"]:
        """√(v + σ²): the scale of f on which the probability of a label goes from 0 to 1."""
        return np.asarray(np.sqrt(self.variance + self.noise))

    def sites(self, f: Array, first: bool = False) -> tuple[Array, Array]:  # (n, m) both
        """Targets and noise of the Gaussians that stand for all copies of each label, where the mean is f.

        For the first step nothing is known, and the cavities have the mean of the prior, 0.
        """
        z, width = np.zeros_like(f) if first else self._places(f), self.width
        r, bend, straight = hazard(z)
        with np.errstate(divide="ignore"):
            noise = np.minimum((self.noise + self.variance * straight) / bend / self.copies, self.flattest)
        return self.Y * (z * width + r / width * (noise * self.copies + self.variance)), noise

    def pull(self, f: Array) -> Annotated[Array, "n, m"]:
        """The α that the labels ask for where the mean is f."""
        z, width = self._places(f), self.width
        r, _, straight = hazard(z)
        kappa, less = self.variance / width**2, np.minimum(self.copies, 1.0)
        whole = self.noise / width**2 + kappa * straight + less * kappa * (1.0 - straight)
        return np.asarray(self.Y * self.copies * r / (whole * width))

    def _places(self, f: Array) -> Annotated[Array, "n, m"]:
        """z of the cavities' means, from the posterior means; Newton's steps from the right never cross it.

        Where an example counts w < 1 times, its site is w of one and the cavity is without all of it: α = wβ/(1 − (1 −
        w)vγ). With q = r(z + r), e = 1 − κq and u = e + wκq, F = z + κwr/u has the slope e/u + w(1 − w)κ²rq'/u².
        """
        total = self.variance + self.noise
        if not self.variance.any():  # the cavity's mean is f
            return np.asarray(self.Y * f / np.sqrt(total))
        kappa, gap, w = self.variance / total, self.noise / total, np.minimum(self.copies, 1.0)
        wanted = self.Y * f / np.sqrt(total)
        z = wanted.copy()
        for _ in range(ROOT_STEPS):
            r, q, straight = hazard(z)
            with np.errstate(divide="ignore", invalid="ignore"):
                beyond = np.where(z < 0, q / r, z + r)  # z + r, with all its digits
            e = gap + kappa * straight
            u = e + w * kappa * q
            F = (e * z + w * kappa * (beyond - z * straight)) / u
            slope = e / u + w * (1.0 - w) * kappa**2 * r * (r * straight - q * beyond) / u**2
            step = (F - wanted) / slope
            z = z - step
            if (np.abs(step) <= 4.0 * np.finfo(np.float64).eps * (1.0 + np.abs(z))).all():
                break
        return np.asarray(z)


@dataclass
class Means:
    """Where Newton's method stands, for every column."""

    f: Annotated[Array, "n, m"]
    alpha: Annotated[Array, "n, m"]  # f = Kα
    targets: Annotated[Array, "n, m"]  # the sites of the last step
    noise: Annotated[Array, "n, m"]
    left_out: Annotated[Array, "n, m"]  # variance of f with one copy of the example left out, under these sites
    leverage: Annotated[Array, "n, m"]  # of the examples, under these sites
    moved: Annotated[
        Array, "m"
    ]  # the largest change of f in the last step, by the width of its site, or `width` + |f| if less
    blurred: Annotated[Array, "m"]  # how much of it may be what conjugate gradients leave; 0 with factors

    @classmethod
    def start(cls, labels: Labels) -> "Means":
        """Nothing known: sites as flat as they get."""
        zero, m = np.zeros_like(labels.Y), labels.Y.shape[1]
        return cls(zero, zero, zero, zero + labels.flattest, zero, zero, np.full(m, np.inf), np.zeros(m)).copy()

    def copy(self) -> "Means":
        """A copy with arrays of its own."""
        return Means(**{name: part.copy() for name, part in vars(self).items()})

    def take(self, other: "Means", some: Array) -> None:
        """Some columns of another."""
        for name, part in vars(self).items():
            part[..., some] = getattr(other, name)[..., some]


def newton_step(
    labels: Labels,
    means: Means,
    some: Array,  # numbers of the columns that take it
    weight: Annotated[Array, "n"] | None,
    left: float | None = None,  # residual that may be left
) -> Steps[Solution]:
    """One step of some columns, as long as leads down; what it finds is written into `means`."""
    part = labels.columns(some)
    f, alpha = means.f[:, some], means.alpha[:, some]
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # said below
        targets, noise = part.sites(f, first=bool(np.isinf(means.moved[some]).all()))
        _check_finite(part, targets)
        far = means.moved[some] > ROUGH
        guess = np.where(far, _guess(part, f, alpha, targets, noise), alpha)
    posterior = yield Regression(noise, targets, guess, left)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        mean = posterior.mean if isinstance(posterior, Drafted) else targets - noise * posterior.alpha
        step = mean - f, posterior.alpha - alpha
        _check_finite(part, step[0])
        pull = part.pull(f) if part.variance.any() else (targets - f) / noise  # the same for Laplace, at no cost
        share = _share(part, f, alpha, pull, step)
    unit = np.minimum(part.width + np.abs(f + step[0]), np.sqrt(noise * part.copies))
    means.f[:, some], means.alpha[:, some] = f + share * step[0], alpha + share * step[1]
    means.targets[:, some], means.noise[:, some] = targets, noise
    means.left_out[:, some] = leave_one_out(targets, posterior.alpha, posterior.inverse_diagonal, noise, weight)[1]
    means.leverage[:, some] = 1.0 - noise * posterior.inverse_diagonal
    means.moved[some] = (np.abs(step[0]) / unit).max(axis=0, initial=0.0)
    blurred = 3.0 * posterior.residual / part.width.min(axis=0, initial=np.inf)
    means.blurred[some] = 0.0 if exact(posterior) else np.minimum(blurred, ROUGH)
    return posterior


def _guess(labels: Labels, f: Array, alpha: Array, targets: Array, noise: Array) -> Annotated[Array, "n, m"]:
    """A first guess of α: for examples with much noise what they ask for where the mean is f, for others α as it is.

    Far from the boundary the noise of a site may grow a hundredfold in a step. The old α then misses its target by as
    much, and conjugate gradients took a third of their iterations to forget that.
    """
    return np.asarray(alpha + (targets - noise * alpha - f) / (noise + LIGHT * labels.flattest))


def exact(posterior: Solution) -> bool:
    """Whether it is that of a factor: α but for rounding, and the diagonal of (K + N)⁻¹, which else is an estimate."""
    return posterior.error == 0.0


def _check_finite(labels: Labels, values: Array) -> None:
    if not np.isfinite(values).all():
        raise InvalidInput(
            f"The kernel is too large for its noise in float64: latent values overflow where σ² is "
            f"{labels.noise.max():.3g}. Raise `noise`. Scale the features to values near 1, or scale the kernel."
        )


def _share(labels: Labels, f: Array, alpha: Array, pull: Array, step: tuple[Array, Array]) -> Annotated[Array, "m"]:
    """The share of the step at whose end what is minimised does not rise steeply; all of it near the minimum."""
    share = np.ones(f.shape[1])
    first = np.einsum("ij,ij->j", step[0], alpha - pull)
    for _ in range(HALVINGS):
        end = alpha + share * step[1]
        pull = labels.pull(f + share * step[0])
        slope = np.einsum("ij,ij->j", step[0], end - pull)
        allowed = SLOWED * np.abs(first) + ROUNDING * np.einsum("ij,ij->j", np.abs(step[0]), np.abs(end) + np.abs(pull))
        steep = slope > allowed
        if not steep.any():
            break
        share[steep] /= 2.0
    return share
