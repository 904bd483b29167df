"""Fashion-MNIST, all 60,000 pictures and ten classes, raw pixels.

`python benchmarks/fashion.py FOLDER` with the four files of the data set (Debian: dataset-fashion-mnist) writes
benchmarks/results/fashion.json.
"""

import gzip
from pathlib import Path

import measure
import numpy as np
from harness import arguments
from sklearn.metrics import log_loss

from saccade import GPClassifier
from saccade._core.arrays import Array
from saccade.kernels import HIK, Power
from saccade.scores.probability import expected_calibration_error


def read(folder: Path, part: str) -> tuple[Array, Array]:
    def numbers(kind: str, offset: int) -> Array:
        path = next(p for p in sorted(folder.rglob(f"{part}-{kind}-idx*")))
        raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        return np.frombuffer(raw, np.uint8, offset=offset)

    return numbers("images", 16).reshape(-1, 784), numbers("labels", 8)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("folder", type=Path, help="with the four files of Fashion-MNIST")
    options = parser.parse_args()
    X, y = read(options.folder, "train")
    Z, truth = read(options.folder, "t10k")
    GPClassifier(random_state=0, solver="cg").fit(X[:1000], y[:1000]).predict(Z[:10])  # compile
    rows = []
    for name, parameters in (
        ("HIK, noise 0.1", {}),
        ("HIK, noise 1", {"noise": 1.0}),
        ("HIK after Power(0.5), noise 0.1", {"kernel": HIK(Power(0.5))}),
    ):
        model = GPClassifier(random_state=0, **parameters)
        before = measure.resident_bytes()
        measure.reset_peak()
        fit = measure.seconds(lambda model=model: model.fit(X, y), 1, warm_up=False)
        peak = measure.resident_bytes(peak=True) - before
        P = model.predict_proba(Z)
        predict = measure.seconds(lambda model=model: model.predict_proba(Z), 3)
        rows.append(
            {
                "model": name,
                "fit, s": fit,
                "GB beyond input": peak / 1e9,
                "iterations": model.n_iter_,
                "rank": model.rank_,
                "residual": model.residual_,
                "accuracy": float((P.argmax(axis=1) == truth).mean()),
                "mean confidence": float(P.max(axis=1).mean()),
                "calibration error": expected_calibration_error(P, truth),
                "log loss": float(log_loss(truth, P)),
                "predict_proba, µs an example": predict / len(Z) * 1e6,
            }
        )
        print(rows[-1], flush=True)
    measure.write_json(options.out / "fashion.json", {"n": len(X), "models": rows})


if __name__ == "__main__":
    main()
