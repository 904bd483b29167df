"""Evidence and tuning: how near the estimate is, what its derivatives cost, how long a search takes.

`python benchmarks/tuning.py` writes benchmarks/results/tuning.json. Data: synthetic histograms, 1,000 dimensions, 200
non-zeros, two classes (`saccade.datasets.synthetic`). Set OPENBLAS_NUM_THREADS to the number of cores. These data are
for times: which features are present tells the class, so a naive Bayes classifier of presence is hard to beat on them.
"""

import warnings
from typing import Any

import measure
import numpy as np
from harness import arguments
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.naive_bayes import BernoulliNB

from saccade import GPClassifier, Tune
from saccade.datasets.synthetic import histograms
from saccade.estimators.losses import ClassLosses
from saccade.inference.solving.evidence import log_marginal_likelihood
from saccade.inference.tuning.evidence_slope import exact_evidence, stochastic_evidence
from saccade.inference.tuning.objective import Objective, Task
from saccade.kernels import HIK, Power, Weights

NOISE = 0.1
SAMPLES = (2_000, 6_000)  # whose evidence dense algebra can judge
DIGITS, SEEDS = 1797, 10
SIZES, SEARCHED, TEST = (10_000, 50_050), 50_050, 10_000


def data(n: int) -> tuple[Any, Any]:
    return histograms(n, rng=np.random.default_rng(0))


def accuracy() -> list[dict[str, Any]]:
    """Estimates of the evidence against dense algebra, ten seeds: of a search, seven probes, and the one for users."""
    X, y = load_digits(return_X_y=True)
    cases = [("digits", X[:DIGITS] / 16.0, y[:DIGITS], noise) for noise in (1.0, 0.1, 0.01)]
    cases += [(f"synthetic, n = {n:,}", *data(n), NOISE) for n in SAMPLES]
    rows = []
    for name, X, y, noise in cases:
        classes = np.unique(y)
        Y = np.where(y[:, None] == classes, 1.0, -1.0)[:, -1 if classes.size == 2 else 0 :]
        K, N = HIK().gram(X), np.full((len(y), 1), noise)
        exact = exact_evidence(K, N, Y).value
        options = {"start": None, "tol": 1e-2, "max_iter": 1000, "probes": 7}
        found = [stochastic_evidence(K, N, Y, seed=seed, **options) for seed in range(SEEDS)]
        alpha = found[0].alpha
        public = [
            log_marginal_likelihood(K, N, Y, alpha, method="stochastic", rng=np.random.default_rng(seed))
            for seed in range(SEEDS)
        ]
        row = {"data": name, "noise": noise, "nats an example": exact / len(y)}
        row["in a search"] = _errors([f.value for f in found], [f.error for f in found], exact)
        row["log_marginal_likelihood"] = _errors([-f.value for f in public], [f.error for f in public], exact)
        rows.append(row)
        print(row, flush=True)
    return rows


def _errors(values: list[float], errors: list[float], exact: float) -> dict[str, Any]:
    off = np.abs(np.array(values) - exact)
    return {
        "mean error, %": 100 * float(off.mean() / abs(exact)),
        "largest error, %": 100 * float(off.max() / abs(exact)),
        "within two standard errors": f"{(off <= 2 * np.array(errors)).sum()} of {off.size}",
    }


def derivatives(n: int) -> dict[str, Any]:
    """Evidence with the derivatives of 1,000 weights, noise and scale, against one fit."""
    X, y = data(n)
    Y = np.where(y == 1, 1.0, -1.0)[:, None]

    def fit() -> GPClassifier:
        return GPClassifier(noise=NOISE, tol=1e-2, variance=None, random_state=0).fit(X, y)

    task = Task(HIK(Weights()), HIK().gram(X), Y, np.ones((n, 1)), NOISE, ClassLosses(y, None))
    objective = Objective(task, "evidence")
    theta = objective.table[:, 0]

    def evaluate() -> Any:
        objective._alpha = None  # from scratch: a search would start from the last solution
        return objective(theta)

    one, whole = measure.seconds(fit, 3), measure.seconds(evaluate, 3)
    row = {
        "n": n,
        "parameters": theta.size,
        "GPClassifier.fit, s": one,
        "evidence with derivatives, s": whole,
        "ratio": whole / one,
    }
    print(row, flush=True)
    return row


def search(n: int, objective: str) -> dict[str, Any]:
    """Tuning η, noise and scale on n examples, and what it brings."""
    X, y = data(n + TEST)
    X, y, X_test, truth = X[:n], y[:n], X[n:], y[n:]
    plain = GPClassifier(HIK(Power(1.0)), noise=NOISE, variance=None, random_state=0).fit(X, y)
    tuned = GPClassifier(HIK(Power(1.0)), noise=NOISE, tune=Tune(objective=objective), variance=None, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # presence alone tells these classes apart: η goes down
        seconds = measure.seconds(lambda: tuned.fit(X, y), 1, warm_up=False)
    row = {
        "n": n,
        "objective": objective,
        "s": seconds,
        "evaluations on a sample": sum(e.examples < n for e in tuned.tuning_.evaluations),
        "evaluations on all": sum(e.examples == n for e in tuned.tuning_.evaluations),
        "eta": float(tuned.kernel_.transforms()[0].eta),
        "noise": tuned.noise_,
        "accuracy untuned": float(plain.score(X_test, truth)),
        "accuracy tuned": float(tuned.score(X_test, truth)),
        "accuracy of BernoulliNB": float(BernoulliNB().fit(X, y).score(X_test, truth)),
    }
    print(row, flush=True)
    return row


def main() -> None:
    options = arguments(__doc__).parse_args()
    results = {
        "accuracy": accuracy(),
        "derivatives": [derivatives(n) for n in SIZES],
        "search": [search(SEARCHED, objective) for objective in ("evidence", "loo")],
    }
    measure.write_json(options.out / "tuning.json", results)


if __name__ == "__main__":
    main()
