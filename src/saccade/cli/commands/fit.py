"""`saccade fit`: train on a table of features or a folder of pictures and keep the model in one file."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import saccade
from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput, InvalidParameter
from saccade.cli import console
from saccade.cli import options as o
from saccade.cli import pictures as p
from saccade.cli.duplicates import find_duplicates, warn_of
from saccade.cli.fit_boxes import BoxOptions, fit_boxes, refuse_others
from saccade.cli.reports.fit import judged, write_fit_report
from saccade.cli.tables.columns import TableReading
from saccade.cli.tables.read import Examples, read
from saccade.cli.targets import check_targets

Rows = list[tuple[str, str]]  # names and values, as the terminal and the report show them

CALIBRATION_BINS = 15
MANY_CLASSES = 50  # from here on numbers may be measurements


@dataclass(frozen=True)
class LearningOptions(o.KernelOptions):
    """What is learned, and how."""

    kernel: str = o.option(
        "hik",
        "How examples are compared: by hik, or by auto, which tries hik and kernels that join features. auto is better "
        "for tables whose columns have different units, and keeps the training rows in MODEL.",
        metavar="hik|auto",
    )
    tune: str | None = o.option(
        None,
        "Learn noise, scale and ETA, if there is one, from the training examples. gradient, nelder-mead and grid name "
        "the method of search; evidence and loo name what it maximises: the probability of the labels, or how well "
        "each example is predicted from all others.",
        metavar="gradient|nelder-mead|grid|evidence|loo",
    )
    balanced: bool = o.option(False, "Give rare classes the same total weight as others.", "--balanced")
    regression: bool = o.option(False, "The labels are measurements, not classes.", "--regression")
    normalize_y: bool = o.option(
        True,
        "With --regression: subtract the mean of the labels and divide by their standard deviation. --noise is then a "
        "share of their variance, else it has their squared units.",
        "--normalize-y/--no-normalize-y",
    )


@dataclass(frozen=True)
class TrialOptions:
    """How the model is tested, and what is shown of it."""

    test_share: float = o.option(
        0.0, "Hold back this share of the examples and test on them.", metavar="SHARE", min=0.0, max=0.9
    )
    report: Path | None = o.option(
        None,
        "For pictures: also write an .html page of the held-out pictures by class and answer, and of duplicates.",
        metavar="FILE",
    )


@o.grouped
def fit(
    data: o.Data,
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The model file to write, such as model.saccade.")],
    learning: LearningOptions,
    trial: TrialOptions,
    pictures: o.FeatureOptions,
    drawn: BoxOptions,
    force: o.Force = False,
    *,
    table: o.TableOptions,
) -> None:
    """Train on DATA and write MODEL, one file of tables.

    In a folder of pictures each class has a folder of its own, or --labels names the pictures. Where --labels names
    examples, those without a label are left out. With --boxes the model finds an object, for `saccade find`.
    """
    check_targets({"MODEL": model, "--report": trial.report}, force, (data, *table.files))
    with console.progress():
        if drawn.boxes is not None:
            rows = _fit_boxes(data, model, drawn, learning, trial, pictures, table)
            console.table([*rows, _file_row(model)])
            return
        if drawn.looks != BoxOptions.looks:
            raise InvalidInput("--looks is for training on boxes. Add --boxes, or leave it out.")
        estimator = _estimator(learning)
        if data.is_dir():
            rows = _fit_pictures(estimator, data, model, learning, pictures, table.files, trial)
        elif trial.report is not None:
            raise InvalidInput(f"--report shows pictures, and {data} is a table. Leave it out.")
        else:
            rows = _fit_table(estimator, data, model, table.how, trial.test_share, learning.seed)
    console.table([*rows, _file_row(model)])


def _file_row(model: Path) -> tuple[str, str]:
    return "model file", f"{model}, {console.size(model.stat().st_size)}"


def _fit_boxes(
    data: Path,
    model: Path,
    drawn: BoxOptions,
    learning: LearningOptions,
    trial: TrialOptions,
    seeing: o.FeatureOptions,
    table: o.TableOptions,
) -> Rows:
    refuse_others(learning, trial, table)
    return fit_boxes(data, model, drawn, table.label, seeing.crops_chain(learning.seed), learning.seed)


def _fit_table(estimator: Any, data: Path, model: Path, how: TableReading, share: float, seed: int) -> Rows:
    regression = not hasattr(estimator, "predict_proba")
    examples = read(data, how, partly=True)
    target = _targets(examples, regression)
    train, test = _split(target, share, seed, regression)
    watch = console.Stopwatch()
    estimator.fit(examples.X[train] if test.size else examples.X, target[train])
    taken = str(watch)
    rows = _trained(estimator, target[train])
    rows += _tested(estimator, examples.X[test], target[test]) if test.size else []
    if examples.names:
        estimator.feature_names_in_ = np.array(examples.names, object)
    estimator.save(model)
    return [*rows, ("training time", taken)]


def _fit_pictures(
    estimator: Any,
    data: Path,
    model: Path,
    learning: LearningOptions,
    seeing: o.FeatureOptions,
    labels: tuple[Path, ...],
    trial: TrialOptions,
) -> Rows:
    """Train on a folder of pictures; the vocabulary too comes from the training part alone."""
    if not hasattr(estimator, "predict_proba"):
        raise InvalidInput("--regression needs numbers as labels, and the folders of pictures are classes.")
    chain = seeing.chain(learning.seed)
    pictures, y = p.with_labels(data, p.read(data, chain, seeing, by_class=not labels), labels)
    train, test = _split(y, trial.test_share, learning.seed, False)
    watch = console.Stopwatch()
    X = seeing.vectors(chain, pictures[train], y[train])
    seen, watch = str(watch), console.Stopwatch()
    estimator.set_params(**learning.for_pictures(X.shape[1])).fit(X, y[train])
    taken = str(watch)
    rows = _trained(estimator, y[train])
    X_test = chain.transform(pictures[test]) if test.size else None
    rows += [] if X_test is None else _tested(estimator, X_test, y[test])
    estimator.save(model, features=chain, compact=True)
    pairs = find_duplicates(pictures)
    warn_of(pairs, pictures, test)
    rows += [("feature extraction", f"{seen}, {seeing.recipe} features"), ("training time", taken)]
    if trial.report is not None:
        answers = None if X_test is None else judged(estimator, pictures[test], X_test, y[test])
        write_fit_report(trial.report, data, rows, estimator.classes_, answers, pictures, y, pairs)
        rows.append(("report", str(trial.report)))
    return rows


def _kernel(learning: LearningOptions) -> Any:
    """The kernel that --kernel names: "auto" as it is, or HIK with what its options say."""
    from saccade._core.checks import check_choice

    check_choice("kernel", learning.kernel, ("hik", "auto"))
    if learning.kernel == "hik":
        return learning.hik()
    if (learning.power, learning.exponential) != (None, None):
        raise InvalidParameter("--kernel auto takes features as they are. Leave out --power and --exponential.")
    return learning.kernel


def _estimator(learning: LearningOptions) -> Any:
    from saccade._core.checks import check_noise
    from saccade.inference.tuning.options import check_tune

    kernel = _kernel(learning)
    common: dict[str, Any] = {"levels": learning.level_count, "tune": check_tune(learning.tune)}
    common |= {"variance": "lowrank", "random_state": learning.seed}
    if learning.noise is not None:
        common["noise"] = check_noise(learning.noise)
    if not (learning.regression or learning.normalize_y):
        raise InvalidParameter("--no-normalize-y is about measurements. Add --regression, or leave it out.")
    if not learning.regression:
        return saccade.GPClassifier(kernel, balanced=learning.balanced, **common)
    if kernel == "auto":
        raise InvalidParameter("--kernel auto compares kernels by classes and --regression has none. Leave it out.")
    if learning.balanced:
        raise InvalidParameter("--balanced is about classes and --regression has none. Leave one of them out.")
    return saccade.GPRegressor(kernel, normalize_y=learning.normalize_y, **common)


def _targets(examples: Examples, regression: bool) -> Array:
    y = examples.y
    assert y is not None
    if regression:
        if y.dtype.kind not in "biuf":
            raise InvalidInput(
                f"--regression needs numbers as labels, got {str(y[0])!r}. Leave it out to train classes."
            )
        return y.astype(np.float64)
    measured = (y != np.rint(y)) | (np.abs(y) >= 2.0**63) if y.dtype.kind == "f" else np.zeros(len(y), bool)
    if measured.any():
        value = float(y[measured][0])
        raise InvalidInput(
            f"The label {value:g} is a measurement rather than a class. Add --regression to predict numbers."
        )
    classes = np.unique(y).size
    many = classes > max(MANY_CLASSES, len(y) / 10) or classes == len(y) > 2
    if y.dtype.kind in "iuf" and many:
        what = "All labels are" if classes == len(y) else f"The labels are {classes:,}"
        console.warn(f"{what} different numbers. If they are measurements, add --regression.")
    return y


def _split(y: Array, share: float, seed: int, regression: bool) -> tuple[Array, Array]:
    """Row numbers to train and to test on: the same share of every class, of which at least one example trains."""
    order = np.random.default_rng(seed).permutation(len(y))
    kind = np.zeros(len(y), np.int64) if regression else np.unique(y, return_inverse=True)[1]
    held = np.zeros(len(y), bool)
    for members in np.split(order[np.argsort(kind[order], kind="stable")], np.cumsum(np.bincount(kind))[:-1]):
        held[members[: min(round(share * len(members)), len(members) - 1)]] = True
    if share > 0 and not held.any():
        raise InvalidInput(
            f"--test-share {share:g} of {len(y)} examples leaves nothing to test on. Take a larger share."
        )
    return np.flatnonzero(~held), np.flatnonzero(held)


def _trained(estimator: Any, y: Array) -> Rows:
    rows = [("examples", f"{len(y):,}"), ("features", f"{estimator.n_features_in_:,}")]
    if hasattr(estimator, "classes_"):
        rows.append(("classes", f"{estimator.classes_.size:,}"))
    if estimator.kernel == "auto":
        rows.append(("kernel", _kernel_text(estimator.kernel_)))
    if estimator.tuning_ is not None:
        learned = {type(t).__name__.lower(): t.eta for t in estimator.kernel_.transforms()}
        learned["noise"] = estimator.noise_
        rows.append(("learned", ", ".join(f"{name} {value:.3g}" for name, value in learned.items())))
        rows.append(("tuning", f"{len(estimator.tuning_.evaluations)} evaluations, {estimator.tuning_.stopped}"))
    rows += [
        ("iterations", f"{estimator.n_iter_:,}"),
        ("converged", "yes" if estimator.converged_ else "no"),
        ("residual", f"{estimator.residual_:.1e}"),
    ]
    if hasattr(estimator, "classes_"):
        share, error = estimator.leave_one_out_accuracy_
        rows.append(("leave-one-out accuracy", f"{share:.4f} ± {error:.4f}"))
    return rows


def _kernel_text(kernel: Any) -> str:
    """The kernel that `--kernel auto` chose, in words: numbers per column would fill the terminal.

    >>> from saccade.kernels import HIK, RBF, GeneralizedRBF, Weights
    >>> _kernel_text(GeneralizedRBF(HIK(Weights([1.0, 2.0]), scale=1.0), beta=0.25))
    'exp(-0.25 D), D the L1 distance of columns over their deviations'
    >>> _kernel_text(RBF([2.0, 3.0]))
    'exp(-0.5 D), D the squared distance of columns over lengths in proportion to their deviations'
    >>> _kernel_text(RBF(2.0)), _kernel_text(HIK())
    ('exp(-0.125 D), D the squared distance of columns as they are', 'HIK()')
    """
    from saccade.kernels import RBF, GeneralizedRBF

    if isinstance(kernel, GeneralizedRBF):
        beta, distance, over = kernel.beta, "L1", "their deviations" if kernel.base.transforms() else ""
    elif isinstance(kernel, RBF):
        single = np.size(kernel.length_scale) == 1
        beta, distance = 0.5 / float(kernel.length_scale) ** 2 if single else 0.5, "squared"
        over = "" if single else "lengths in proportion to their deviations"
    else:
        return repr(kernel)
    return f"exp(-{beta:.3g} D), D the {distance} distance of columns {f'over {over}' if over else 'as they are'}"


def _tested(estimator: Any, X: Any, y: Array) -> Rows:
    from saccade.scores.probability import expected_calibration_error

    rows = [("held-out examples", f"{len(y):,}")]
    if not hasattr(estimator, "classes_"):
        error = np.sqrt(np.mean((estimator.predict(X) - y) ** 2))
        return [*rows, ("held-out R²", f"{estimator.score(X, y):.4f}"), ("held-out error (RMS)", f"{error:.4g}")]
    p, number = estimator.predict_proba(X), np.searchsorted(estimator.classes_, y)
    loss = -np.log(np.maximum(p[np.arange(len(y)), number], np.finfo(float).tiny)).mean()
    return [
        *rows,
        ("held-out accuracy", f"{estimator.score(X, y):.4f}"),
        ("held-out log loss", f"{loss:.4f}"),
        ("held-out calibration error", f"{expected_calibration_error(p, number, CALIBRATION_BINS):.4f}"),
    ]
