"""How fast objects are found and decisions explained.

    OPENBLAS_NUM_THREADS=1 python benchmarks/finding.py

1. `explain` of 10,000 histograms, 1,000 dimensions and 200 non-zeros, two and ten classes: seconds. Goal: 1 s.

Writes benchmarks/results/finding.json.
"""

from typing import Any

import numpy as np
from harness import arguments

from saccade import GPClassifier
from saccade.cli import measure
from saccade.datasets.synthetic import histograms

TRAIN, EXPLAINED, REPEATS = 2000, 10_000, 5
GOAL_EXPLAIN_S = 1.0


def explaining() -> list[dict[str, Any]]:
    """Seconds for the shares of all features, with their sums checked against the decision in the same run."""
    X, y = histograms(TRAIN + EXPLAINED, rng=np.random.default_rng(0))
    old, new = X[:TRAIN], X[TRAIN:]
    ten = np.random.default_rng(1).integers(0, 5, TRAIN) + 5 * y[:TRAIN]
    rows = []
    for classes, labels in ((2, y[:TRAIN]), (10, ten)):
        for levels in (None, 64):
            model = GPClassifier(levels=levels, variance=None, random_state=0).fit(old, labels)
            off = np.abs(model.explain(new).decision() - model.decision_function(new).reshape(EXPLAINED, -1)).max()
            assert off < 1e-10
            row = {"classes": classes, "levels": levels, "examples": EXPLAINED, "largest difference": float(off)}
            row["explain, s"] = measure.seconds(lambda m=model: m.explain(new), REPEATS)
            row["decision_function, s"] = measure.seconds(lambda m=model: m.decision_function(new), REPEATS)
            print(row, flush=True)
            rows.append(row)
    return rows


def main() -> None:
    options = arguments(__doc__).parse_args()
    record: dict[str, Any] = {"goal, explain, s": GOAL_EXPLAIN_S, "explain": explaining()}
    measure.write_json(options.out / "finding.json", record)


if __name__ == "__main__":
    main()
