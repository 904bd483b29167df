"""Side by side with what people use now, each alone in a fresh process, at sizes it can manage.

    python benchmarks/peers.py [--fashion FOLDER] [--only NAME ...]

Writes benchmarks/results/peers.json. GPyTorch takes part if it is installed. Everyone sees the same rows. Each peer is
set up as its documentation has it, and what it leaves open is chosen on the training rows alone: C (and γ) of an SVM by
cross-validation, on scaled rows for RBF; the length scale of scikit-learn's GP and the scale of GPyTorch's by evidence;
noise and exponent of ours by leave-one-out, beside ours untuned. Time to fit includes the choice.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import measure
import numpy as np
from harness import arguments
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, train_test_split

from saccade.kernels import HIK
from saccade.scores.probability import expected_calibration_error

COSTS, GAMMAS, FOLDS = (0.1, 1.0, 10.0, 100.0), (0.25, 1.0, 4.0), 3
STEPS = 50  # of Adam, as in GPyTorch's tutorials
SAMPLES = 256  # of the latent functions, likewise


def problem(name: str, n: int, folder: Path | None) -> Any:
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        X, Z, y, truth = train_test_split(X, y, train_size=n, test_size=800, random_state=0, stratify=y)
    else:
        from fashion import read

        (X, y), (Z, truth) = read(folder, "train"), read(folder, "t10k")
        X, y, Z, truth = X[:n].astype(float), y[:n], Z[:2000].astype(float), truth[:2000]
    return X, y, Z, truth


def saccade_hik(X: Any, y: Any, Z: Any) -> Any:
    from saccade import GPClassifier

    model = GPClassifier(random_state=0).fit(X, y)
    return lambda: model.predict_proba(Z)


def saccade_tuned(X: Any, y: Any, Z: Any) -> Any:
    from saccade import GPClassifier
    from saccade.kernels import Power

    model = GPClassifier(HIK(Power(1.0)), tune="gradient", random_state=0).fit(X, y)
    return lambda: model.predict_proba(Z)


def saccade_exphik(X: Any, y: Any, Z: Any) -> Any:
    from saccade import GPClassifier
    from saccade.kernels import GeneralizedRBF

    model = GPClassifier(GeneralizedRBF(HIK(), 1.0), random_state=0).fit(X, y)
    return lambda: model.predict_proba(Z)


def sklearn_gpc(X: Any, y: Any, Z: Any) -> Any:
    from sklearn.gaussian_process import GaussianProcessClassifier
    from sklearn.gaussian_process.kernels import RBF
    from sklearn.metrics import pairwise_distances

    start = float(np.median(pairwise_distances(X)))
    model = GaussianProcessClassifier(1.0 * RBF(start), random_state=0).fit(X, y)
    return lambda: model.predict_proba(Z)


def svc_hik(X: Any, y: Any, Z: Any, *, rest: bool) -> Any:
    """libsvm on our kernel; each class against the rest, or one against one as libsvm does it."""
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.svm import SVC

    kernel, svc = HIK().resolved(X), SVC(kernel="precomputed")
    grid = {"estimator__C" if rest else "C": COSTS}
    model = calibrated(OneVsRestClassifier(svc) if rest else svc, grid, kernel(X), y)
    return lambda: model.predict_proba(kernel(Z, X))


def svc_hik_rest(X: Any, y: Any, Z: Any) -> Any:
    return svc_hik(X, y, Z, rest=True)


def svc_hik_pairs(X: Any, y: Any, Z: Any) -> Any:
    return svc_hik(X, y, Z, rest=False)


def svc_rbf(X: Any, y: Any, Z: Any) -> Any:
    from sklearn.preprocessing import MinMaxScaler
    from sklearn.svm import SVC

    scaler = MinMaxScaler().fit(X)
    A = scaler.transform(X)
    usual = 1.0 / (A.shape[1] * A.var())  # gamma="scale"
    model = calibrated(SVC(), {"C": COSTS, "gamma": [usual * factor for factor in GAMMAS]}, A, y)
    return lambda: model.predict_proba(scaler.transform(Z))


def calibrated(model: Any, grid: dict[str, Any], X: Any, y: Any) -> Any:
    """The best of the grid by cross-validation, with probabilities from Platt's sigmoids."""
    from sklearn.calibration import CalibratedClassifierCV

    best = GridSearchCV(model, grid, cv=FOLDS, refit=False).fit(X, y).best_params_
    return CalibratedClassifierCV(model.set_params(**best), ensemble=False).fit(X, y)


def gpytorch_hik(X: Any, y: Any, Z: Any) -> Any:
    """GPyTorch's way to classify exactly: Dirichlet targets, an exact GP for each class, probabilities by sampling."""
    import gpytorch
    import torch

    kernel = HIK().resolved(X)

    class Intersection(gpytorch.kernels.Kernel):
        def forward(self, A: Any, B: Any, diag: bool = False, **_: Any) -> Any:
            if diag:
                return torch.minimum(A, B).sum(-1)
            sums = A.sum(-1)[..., :, None] + B.sum(-1)[..., None, :]
            return (sums - torch.cdist(A, B, p=1)) / 2  # min(a, b) = (a + b − |a − b|) / 2

    class Model(gpytorch.models.ExactGP):
        def __init__(self, X: Any, Y: Any, likelihood: Any) -> None:
            super().__init__(X, Y, likelihood)
            shape = torch.Size(Y.shape[:1])
            self.mean_module = gpytorch.means.ConstantMean(batch_shape=shape)
            self.covar_module = gpytorch.kernels.ScaleKernel(Intersection(), batch_shape=shape)

        def forward(self, X: Any) -> Any:
            return gpytorch.distributions.MultivariateNormal(self.mean_module(X), self.covar_module(X))

    torch.manual_seed(0)
    A, B = (torch.tensor(kernel.features(M).toarray()) for M in (X, Z))
    labels = torch.tensor(np.searchsorted(np.unique(y), y))
    likelihood = gpytorch.likelihoods.DirichletClassificationLikelihood(
        labels, learn_additional_noise=True, dtype=torch.float64
    ).double()
    model = Model(A, likelihood.transformed_targets, likelihood).double()
    objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.1)
    for _ in range(STEPS):
        optimiser.zero_grad()
        loss = -objective(model(A), likelihood.transformed_targets).sum()
        loss.backward()
        optimiser.step()
    model.eval()
    likelihood.eval()

    def predict() -> Any:
        with torch.no_grad():
            samples = model(B).sample(torch.Size((SAMPLES,)))
            return torch.softmax(samples, 1).mean(0).T.numpy()

    predict()  # it solves when it first predicts: that is part of the fit
    return predict


PEERS = {
    "saccade GPClassifier, HIK": (saccade_hik, {"digits": (250, 500, 900), "fashion": (5000,)}),
    "saccade GPClassifier, HIK, tuned": (saccade_tuned, {"digits": (250, 500, 900), "fashion": (5000,)}),
    "saccade GPClassifier, exp HIK": (saccade_exphik, {"digits": (250, 500, 900), "fashion": (5000,)}),
    "scikit-learn GaussianProcessClassifier, RBF": (sklearn_gpc, {"digits": (250,)}),
    "scikit-learn SVC, HIK, one against rest": (svc_hik_rest, {"digits": (250, 500, 900), "fashion": (5000,)}),
    "scikit-learn SVC, HIK, one against one": (svc_hik_pairs, {"digits": (250, 500, 900), "fashion": (5000,)}),
    "scikit-learn SVC, RBF": (svc_rbf, {"digits": (250, 500, 900), "fashion": (5000,)}),
    "GPyTorch ExactGP, HIK": (gpytorch_hik, {"digits": (250, 500, 900)}),
}


def child(peer: str, name: str, n: int, folder: Path | None) -> dict[str, Any]:
    fit, _ = PEERS[peer]
    X, y, Z, truth = problem(name, n, folder)
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


def alone(peer: str, name: str, n: int, folder: Path | None) -> dict[str, Any]:
    """`child` in a process of its own."""
    command = [sys.executable, __file__, "--child", peer, name, str(n)]
    command += ["--fashion", str(folder)] if folder else []
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"absent": done.stderr.strip().splitlines()[-1]}
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--fashion", type=Path, default=None, help="folder of Fashion-MNIST; left out without it")
    parser.add_argument("--only", nargs="+", default=list(PEERS), choices=list(PEERS))
    parser.add_argument("--most", type=int, default=5000, help="training rows; larger problems are left out")
    parser.add_argument("--child", nargs=3, help=parser.prog)
    options = parser.parse_args()
    if options.child:
        peer, name, n = options.child
        print(json.dumps(child(peer, name, int(n), options.fashion)))
        return
    rows = []
    for peer in options.only:
        for name, counts in PEERS[peer][1].items():
            for n in counts if name == "digits" or options.fashion else ():
                if n > options.most:
                    continue
                found = alone(peer, name, n, options.fashion)
                rows.append({"peer": peer, "data": name, "n": n, **found})
                print(rows[-1], flush=True)
    load = "load average at the end: beyond the number of cores, read accuracies and not seconds"
    measure.write_json(options.out / "peers.json", {load: os.getloadavg()[2], "rows": rows})


if __name__ == "__main__":
    main()
