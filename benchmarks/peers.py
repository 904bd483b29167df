"""Side by side with what people use now, each alone in a fresh process, at sizes it can manage.

`python benchmarks/peers.py [FASHION_MNIST_FOLDER]` writes benchmarks/results/peers.json. GPyTorch takes part if it is
installed. Everyone sees the same rows; nobody tunes.
"""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from saccade.cli import measure
from saccade.kernels import HIK
from saccade.scores.probability import expected_calibration_error

NOISE = 0.1
FOLDER = Path(sys.argv[1]) if len(sys.argv) > 1 and Path(sys.argv[1]).is_dir() else None


def problem(name: str, n: int) -> Any:
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        X, Z, y, truth = train_test_split(X, y, train_size=n, test_size=800, random_state=0, stratify=y)
    else:
        from fashion import read

        (X, y), (Z, truth) = read(FOLDER, "train"), read(FOLDER, "t10k")
        X, y, Z, truth = X[:n].astype(float), y[:n], Z[:2000].astype(float), truth[:2000]
    return X, y, Z, truth


def saccade_hik(X: Any, y: Any, Z: Any) -> Any:
    from saccade import GPClassifier

    model = GPClassifier(noise=NOISE, random_state=0).fit(X, y)
    return lambda: model.predict_proba(Z)


def saccade_exphik(X: Any, y: Any, Z: Any) -> Any:
    from saccade import GPClassifier
    from saccade.kernels import GeneralizedRBF

    model = GPClassifier(GeneralizedRBF(HIK(), beta=1.0), noise=NOISE, random_state=0).fit(X, y)
    return lambda: model.predict_proba(Z)


def sklearn_gpc(X: Any, y: Any, Z: Any) -> Any:
    from sklearn.gaussian_process import GaussianProcessClassifier

    model = GaussianProcessClassifier(random_state=0).fit(X / X.max(), y)
    return lambda: model.predict_proba(Z / X.max())


def svc_hik(X: Any, y: Any, Z: Any) -> Any:
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.svm import SVC

    kernel = HIK().fit(X)
    model = CalibratedClassifierCV(SVC(kernel=kernel, C=1.0), ensemble=False).fit(X, y)
    return lambda: model.predict_proba(Z)


def gpytorch_hik(X: Any, y: Any, Z: Any) -> Any:
    import gpytorch
    import torch

    kernel = HIK().fit(X)

    class Intersection(gpytorch.kernels.Kernel):
        def forward(self, A: Any, B: Any, diag: bool = False, **_: Any) -> Any:
            if diag:
                return torch.minimum(A, B).sum(-1)
            return (
                A.sum(-1)[..., :, None] + B.sum(-1)[..., None, :] - torch.cdist(A, B, p=1)
            ) / 2  # min = (a+b-|a-b|)/2

    class Model(gpytorch.models.ExactGP):
        def __init__(self, X: Any, Y: Any, likelihood: Any) -> None:
            super().__init__(X, Y, likelihood)
            self.mean_module = gpytorch.means.ZeroMean(batch_shape=Y.shape[:1])
            self.covar_module = Intersection()

        def forward(self, X: Any) -> Any:
            return gpytorch.distributions.MultivariateNormal(self.mean_module(X), self.covar_module(X))

    Y = torch.tensor(np.where(y == np.unique(y)[:, None], 1.0, -1.0))
    likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
    likelihood.noise = NOISE
    A, B = (torch.tensor(kernel.features(M).toarray()).expand(len(Y), -1, -1) for M in (X, Z))
    model = Model(A, Y, likelihood).double().eval()
    likelihood.eval()

    def predict() -> Any:
        with torch.no_grad(), gpytorch.settings.skip_posterior_variances():
            mean = model(B).mean.T
            return torch.softmax(mean, 1).numpy()  # GPyTorch leaves calibration to its user

    predict()  # it solves when it first predicts: count that as the fit
    return predict


PEERS = {
    "saccade GPClassifier, HIK": (saccade_hik, {"digits": (250, 500, 900), "fashion": (5000,)}),
    "saccade GPClassifier, exp HIK": (saccade_exphik, {"digits": (250, 500, 900), "fashion": (5000,)}),
    "scikit-learn GaussianProcessClassifier": (sklearn_gpc, {"digits": (250, 500)}),
    "scikit-learn SVC, HIK, calibrated": (svc_hik, {"digits": (250, 500, 900), "fashion": (5000,)}),
    "GPyTorch ExactGP, HIK": (gpytorch_hik, {"digits": (250, 500, 900)}),
}


def child(peer: str, name: str, n: int) -> dict[str, Any]:
    fit, _ = PEERS[peer]
    X, y, Z, truth = problem(name, n)
    fit(X[:100], y[:100], Z[:10])()  # imports and compilation are not its fault
    measure.reset_peak()
    before = measure.resident_bytes()
    start = time.perf_counter()
    predict = fit(X, y, Z)
    fitted = time.perf_counter() - start
    P = predict()
    return {
        "fit, s": fitted,
        "predict, µs an example": measure.seconds(predict, 3) / len(Z) * 1e6,
        "GB": (measure.resident_bytes(peak=True) - before) / 1e9,
        "accuracy": float((np.unique(y)[P.argmax(axis=1)] == truth).mean()),
        "mean confidence": float(P.max(axis=1).mean()),
        "calibration error": expected_calibration_error(P, np.searchsorted(np.unique(y), truth)),
        "log loss": float(log_loss(truth, P)),
    }


def main() -> None:
    rows = []
    for peer, (_, sizes) in PEERS.items():
        for name, counts in sizes.items():
            for n in counts if name == "digits" or FOLDER else ():
                folder = [str(FOLDER)] if FOLDER else ["-"]
                command = [sys.executable, __file__, *folder, "child", peer, name, str(n)]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                if done.returncode == 0:
                    rows.append({"peer": peer, "data": name, "n": n, **json.loads(done.stdout.splitlines()[-1])})
                else:
                    rows.append({"peer": peer, "data": name, "n": n, "absent": done.stderr.strip().splitlines()[-1]})
                print(rows[-1], flush=True)
    measure.write_json(Path(__file__).parent / "results" / "peers.json", {"rows": rows})


if __name__ == "__main__":
    if "child" in sys.argv:
        print(json.dumps(child(*sys.argv[3:5], int(sys.argv[5]))))
    else:
        main()
