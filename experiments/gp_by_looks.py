"""S §7–§9: the pictures of Gaussian-process regression by looks, and whether what they promise holds over 200 runs.

    python experiments/gp_by_looks.py [--runs 200]

Draws before any look; draws after exact looks and after noisy ones, some of them repeated; the same with a mean
function; and the evidence over a grid of length scales and amplitudes, with what gradients find. Each run draws a
function from the prior (squared exponential, length scale 0.1, amplitude 1) around a mean function that has a bump, and
looks at 8 places drawn at random. Recorded: how often the 95 % band holds the truth at 200 places, the root mean square
of the error (with the right mean function it is that of the function without the bump), and how the evidence of
gradients compares with that of the grid, on 25 noisy looks without the bump.
"""

import warnings
from typing import Any

import numpy as np
from common import Array, arguments, plots, save_figure, show_progress, write

LENGTH, AMPLITUDE, NOISE = 0.1, 1.0, 0.05
LOOKS, REPEATED, MANY = 8, 4, 25  # places; looks at the last two of them; looks of the search for parameters
PLACES = np.linspace(0.0, 1.0, 200)[:, None]
LENGTHS, AMPLITUDES = np.geomspace(0.02, 0.6, 13), np.geomspace(0.1, 10.0, 13)
BLUE, RED, GREY = "#1f77b4", "#c2410c", "0.6"


def bump(X: Array) -> Array:
    """Where a situation expects the object: S takes such a mean from context."""
    return np.asarray(2.5 * np.exp(-0.5 * ((X[:, 0] - 0.7) / 0.08) ** 2))


def regressor(noise: float = 0.0, **more: Any) -> Any:
    from saccade import GPRegressor
    from saccade.kernels import RBF

    kernel = more.pop("kernel", RBF(LENGTH, AMPLITUDE))
    return GPRegressor(kernel, noise=noise, normalize_y=False, **more)


def truth(seed: int, mean: Any) -> tuple[Array, Array]:  # (200,), (8,)
    """A function at all places, and the numbers of those that are looked at, apart enough for exact looks."""
    rng = np.random.default_rng(seed)
    some = np.sort(rng.permutation(len(PLACES) // 5)[:LOOKS]) * 5
    return regressor(mean=mean).sample_prior(PLACES, random_state=seed)[:, 0], some


def noisy(f: Array, some: Array, seed: int) -> tuple[Array, Array]:  # (n, 1), (n,)
    """A look at each place and more looks at the last two."""
    rows = np.append(some, np.repeat(some[-2:], REPEATED - 1))
    return PLACES[rows], f[rows] + np.sqrt(NOISE) * np.random.default_rng(seed).standard_normal(rows.size)


def fitted(seed: int) -> dict[str, tuple[Any, Array, Array, Array]]:
    """Models of one run by name, with the truth and the looks."""
    f, some = truth(seed, 0.0)
    g, _ = truth(seed, bump)
    exact, rough, bumpy = (PLACES[some], f[some]), noisy(f, some, seed), noisy(g, some, seed)
    return {
        "exact looks": (regressor().fit(*exact), f, *exact),
        "noisy looks, some repeated": (regressor(NOISE).fit(*rough), f, *rough),
        "a mean function": (regressor(NOISE, mean=bump).fit(*bumpy), g, *bumpy),
        "the same without it": (regressor(NOISE).fit(*bumpy), g, *bumpy),
    }


def searched(seed: int) -> tuple[Any, Any, Any]:
    """Length scale and amplitude by the grid (S §7), by gradients of the evidence, and by gradients from there on."""
    from saccade import Tune
    from saccade.kernels import RBF

    f = truth(seed, 0.0)[0]
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(PLACES))[:MANY]
    looks = PLACES[rows], f[rows] + np.sqrt(NOISE) * rng.standard_normal(MANY)
    grid = {"length_scale": LENGTHS.tolist(), "amplitude": AMPLITUDES.tolist()}
    gradients = Tune(objective="evidence", fixed=("noise",), tol=1e-8)
    by_grid, by_gradient = (regressor(NOISE, kernel=RBF(0.3, 0.5), tune=tune).fit(*looks) for tune in (grid, gradients))
    return by_grid, by_gradient, regressor(NOISE, kernel=by_grid.kernel_, tune=gradients).fit(*looks)


def measure(runs: int) -> dict[str, Any]:
    from sklearn.exceptions import ConvergenceWarning

    from saccade._core.progress import report

    held: dict[str, list[float]] = {}
    off: dict[str, list[float]] = {}
    gains, evaluations, ends = list[list[float]](), [], 0
    for seed in range(runs):
        for name, (model, f, _, _) in fitted(seed).items():
            mean, std = model.predict(PLACES, return_std=True)
            inside = np.abs(f - mean) <= 1.96 * std + 1e-6  # rounding, where a look is exact
            held.setdefault(name, []).append(float(inside.mean()))
            off.setdefault(name, []).append(float(np.square(f - mean).mean()))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # a parameter that the looks do not determine
            grid, gradient, both = searched(seed)
        base = grid.log_marginal_likelihood().value
        gains.append([model.log_marginal_likelihood().value - base for model in (gradient, both)])
        evaluations.append(len(gradient.tuning_.evaluations))
        ends += int(grid.kernel_.length_scale > 0.99 * LENGTHS[-1] or grid.kernel_.length_scale < 1.01 * LENGTHS[0])
        report("runs", (seed + 1) / runs)
    return {
        "share of the truth in the 95 % band": {name: float(np.mean(some)) for name, some in held.items()},
        "root mean square error": {name: float(np.sqrt(np.mean(some))) for name, some in off.items()},
        "log evidence less that of the grid": {
            name: {
                "median": float(np.median(some)),
                "least": float(np.min(some)),
                "share below the grid by 0.01 or more": float(np.mean(some < -0.01)),
            }
            for name, some in zip(("gradients", "gradients from the grid on"), np.array(gains).T, strict=True)
        },
        "evaluations": {"grid": LENGTHS.size * AMPLITUDES.size, "gradients, mean": float(np.mean(evaluations))},
        "runs where the grid ended at its first or last length scale": ends,
    }


def band(ax: Any, draws: Array, mean: Array, std: Array, title: str) -> None:
    x = PLACES[:, 0]
    ax.fill_between(x, mean - 1.96 * std, mean + 1.96 * std, color=BLUE, alpha=0.15, linewidth=0)
    ax.plot(x, draws, color=GREY, linewidth=0.8)
    ax.plot(x, mean, color=BLUE, linewidth=1.8)
    ax.set_title(title, fontsize=10)
    ax.set_xlim(0.0, 1.0)
    ax.set_ylim(-3.2, 5.6)


def draw(out: Any) -> None:
    figure, axes = plots().subplots(2, 3, figsize=(12, 6.4), layout="constrained")
    models = fitted(4)
    for ax, mean, title in (
        (axes[0, 0], 0.0, "Five draws before any look"),
        (axes[1, 0], bump, "The same with a mean function"),
    ):
        model = regressor(mean=mean)
        centre = bump(PLACES) if callable(mean) else np.zeros(len(PLACES))
        draws = model.sample_prior(PLACES, 5, random_state=0)
        band(ax, draws, centre, np.full(len(PLACES), np.sqrt(AMPLITUDE)), title)
    places = {"exact looks": axes[0, 1], "noisy looks, some repeated": axes[0, 2], "a mean function": axes[1, 1]}
    for name, ax in places.items():
        model, f, X, y = models[name]
        draws = model.sample_y(PLACES, 5, random_state=0)
        band(ax, draws, *model.predict(PLACES, return_std=True), "After " + name)
        ax.plot(PLACES[:, 0], f, color=RED, linewidth=1.2, linestyle="--")
        ax.plot(X[:, 0], y, "+", color="black", markersize=7)
    axes[1, 1].set_title("After noisy looks, with the mean function", fontsize=10)
    axes[0, 1].plot([], [], color=BLUE, label="mean and 95 % band")
    axes[0, 1].plot([], [], color=GREY, label="draws")
    axes[0, 1].plot([], [], color=RED, linestyle="--", label="truth")
    axes[0, 1].legend(frameon=False, fontsize=8, loc="upper left")
    surface(figure, axes[1, 2])
    save_figure(figure, out, "gp_by_looks")


def surface(figure: Any, ax: Any) -> None:
    """The evidence over the grid, below its maximum by so many nats, and where both searches ended."""
    grid, gradient, _ = searched(4)
    found = [-MANY * e.value for e in grid.tuning_.evaluations]
    table = np.array(found).reshape(LENGTHS.size, AMPLITUDES.size).T
    shown = ax.contourf(LENGTHS, AMPLITUDES, np.maximum(table - table.max(), -12.0), levels=12, cmap="viridis")
    figure.colorbar(shown, ax=ax, label="log evidence below its best, nats")
    ax.plot(grid.kernel_.length_scale, grid.kernel_.amplitude, "o", color=RED, label="grid")
    ax.plot(gradient.kernel_.length_scale, gradient.kernel_.amplitude, "x", color="white", label="gradients", mew=2)
    ax.plot(LENGTH, AMPLITUDE, "*", color="black", markersize=9, label="truth")
    ax.set(xscale="log", yscale="log", xlabel="length scale", ylabel="amplitude (variance)")
    ax.set_xticks([0.02, 0.05, 0.1, 0.2, 0.5], ["0.02", "0.05", "0.1", "0.2", "0.5"])
    ax.minorticks_off()
    ax.set_title(f"Evidence of {MANY} noisy looks", fontsize=10)
    ax.legend(fontsize=8, loc="lower left", facecolor="0.75")


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--runs", type=int, default=200)
    options = parser.parse_args()
    with show_progress():
        found = measure(options.runs)
    draw(options.out)
    setting = {"length scale": LENGTH, "amplitude": AMPLITUDE, "noise": NOISE, "looks": LOOKS, "many looks": MANY}
    write(options.out, "gp_by_looks", {"runs": options.runs, "seeds": f"0 to {options.runs - 1}", **setting, **found})


if __name__ == "__main__":
    main()
