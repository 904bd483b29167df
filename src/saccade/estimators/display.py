"""Pictures of what tuning learned, as scikit-learn's displays: `from_estimator` draws, `ax_` and `figure_` are kept."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from saccade._core.arrays import Array
from saccade._core.checks import check_count
from saccade._core.errors import InvalidInput
from saccade.estimators.base import GaussianProcess
from saccade.inference.tuning.options import Tuning

INK, ACCENT, QUIET = "#222222", "#0b6e4f", "#b8b8b8"


class RelevanceDisplay:
    """Which features move the answer, and how much: `feature_relevance_` as bars, the largest first.

    Parameters
    ----------
    relevance : array of shape (d,)
        Shares that sum to 1.
    names : sequence of str or None
        Names of the features; None for their numbers.

    Examples
    --------
    >>> RelevanceDisplay(np.array([0.2, 0.8]), ["width", "height"]).relevance.argmax()
    np.int64(1)
    """

    def __init__(self, relevance: Array, names: Sequence[str] | None = None) -> None:
        self.relevance = relevance
        self.names = names

    @classmethod
    def from_estimator(cls, estimator: GaussianProcess, *, top: int = 20, ax: Any = None) -> Self:
        """Draw the `top` most relevant features of a fitted HIK model.

        Parameters
        ----------
        estimator : GPClassifier, GPRegressor or OneClassGP
            Fitted, with an HIK kernel.
        top : int
            Number of bars.
        ax : matplotlib axes, optional
            Where to draw; None makes a figure.

        Returns
        -------
        RelevanceDisplay
            With `ax_` and `figure_`.
        """
        check_is_fitted(estimator)
        names = getattr(estimator, "feature_names_in_", None)
        return cls(estimator.feature_relevance_, names).plot(top=top, ax=ax)

    def plot(self, *, top: int = 20, ax: Any = None) -> Self:
        """Bars for the `top` features, and how much the rest has together.

        Parameters
        ----------
        top : int
            Number of bars.
        ax : matplotlib axes, optional
            Where to draw; None makes a figure.

        Returns
        -------
        self
            With `ax_` and `figure_`.
        """
        top = check_count("top", top, "The default is 20.")
        order = np.argsort(-self.relevance, kind="stable")[:top]
        self.ax_ = _axes(ax, (6.0, 0.24 * order.size + 1.2))
        self.figure_ = self.ax_.figure
        even = 100.0 / self.relevance.size
        self.ax_.barh(np.arange(order.size), 100.0 * self.relevance[order], color=ACCENT, height=0.7)
        self.ax_.axvline(even, color=INK, lw=1.0, ls=":")
        self.ax_.annotate("all equal", (even, order.size - 0.4), (4, 0), textcoords="offset points", fontsize=8)
        labels = [str(i) if self.names is None else str(self.names[i]) for i in order]
        self.ax_.set_yticks(np.arange(order.size), labels)
        self.ax_.invert_yaxis()
        shown = 100.0 * self.relevance[order].sum()
        self.ax_.set_xlabel(f"relevance, % ({order.size} of {self.relevance.size} features have {shown:.0f} % of it)")
        return self


class TuningDisplay:
    """How a search went: the objective over its evaluations, with error bars where it is an estimate.

    Parameters
    ----------
    tuning : Tuning
        `tuning_` of a fitted model.

    Examples
    --------
    >>> from saccade import GPRegressor
    >>> X = np.linspace(0, 1, 20)[:, None]
    >>> model = GPRegressor(tune="grid", noise=0.1).fit(X, X[:, 0] ** 2)
    >>> TuningDisplay(model.tuning_).tuning.objective
    'evidence'
    """

    def __init__(self, tuning: Tuning) -> None:
        self.tuning = tuning

    @classmethod
    def from_estimator(cls, estimator: GaussianProcess, *, ax: Any = None) -> Self:
        """Draw the search of a model that was fitted with `tune`.

        Parameters
        ----------
        estimator : GPClassifier or GPRegressor
            Fitted with `tune`.
        ax : matplotlib axes, optional
            Where to draw; None makes a figure.

        Returns
        -------
        TuningDisplay
            With `ax_` and `figure_`.
        """
        check_is_fitted(estimator)
        if estimator.tuning_ is None:
            raise InvalidInput('There is no search to draw: the model was fitted with tune=None. Pass tune="gradient".')
        return cls(estimator.tuning_).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> Self:
        """Every evaluation as a dot, the best so far as a line; evaluations on a sample are pale.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; None makes a figure.

        Returns
        -------
        self
            With `ax_` and `figure_`.
        """
        self.ax_ = _axes(ax, (6.0, 3.6))
        self.figure_ = self.ax_.figure
        evaluations = self.tuning.evaluations
        sizes = [e.examples for e in evaluations]
        for examples in dict.fromkeys(sizes):
            at = np.flatnonzero(np.array(sizes) == examples)
            value = np.array([evaluations[k].value for k in at])
            error = np.array([evaluations[k].error for k in at])
            whole = examples == max(sizes)
            colour = ACCENT if whole else QUIET
            self.ax_.errorbar(at + 1, value, error, fmt="o", ms=4, color=colour, elinewidth=1.0)
            label = f"{examples:,} examples"
            self.ax_.plot(at + 1, np.minimum.accumulate(value), color=colour, lw=1.5, label=label)
        what = "negative log evidence" if self.tuning.objective == "evidence" else "leave-one-out loss"
        self.ax_.set(xlabel="evaluation", ylabel=f"{what}, nats an example")
        self.ax_.set_title(f"{self.tuning.method}: {self.tuning.stopped}", loc="left", fontsize=10)
        self.ax_.xaxis.get_major_locator().set_params(integer=True)
        self.ax_.legend(frameon=False)
        return self


def _axes(ax: Any, size: tuple[float, float]) -> Any:
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError:
        raise InvalidInput("Drawing needs matplotlib: `pip install saccade[plots]`.") from None
    _, ax = pyplot.subplots(figsize=size, constrained_layout=True)
    ax.spines[["top", "right"]].set_visible(False)
    return ax
