"""Every check of what a caller hands over, once."""

import numbers
from typing import Annotated, Any, TypeGuard

import numpy as np
import scipy.sparse as sp
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, validate_data

from saccade._core import limits
from saccade._core.arrays import Array, RandomSource
from saccade._core.errors import InvalidInput, InvalidParameter
from saccade._core.random_state import draw
from saccade._core.sparse import check_sparse, rises_in_rows

LARGEST = 1e150  # of kernel values, noise and weights: squares and sums of them stay finite


def is_number(value: object) -> TypeGuard[float]:
    """A real number that float64 can hold, which 10**400 is not; True and False are not meant as 1 and 0."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_) and not _is_huge(value)


def _is_huge(value: object) -> bool:
    """Whether it is a number, such as 10**400, that float64 cannot hold."""
    try:
        float(value if isinstance(value, numbers.Real) else 0.0)
    except OverflowError:
        return True
    return False


def as_floats(values: Any) -> Array:
    """As float64, with infinity for numbers that are too large."""
    try:
        return np.asarray(values, np.float64)
    except OverflowError:
        flat = np.asarray(values, object)
        return np.array([np.inf if _is_huge(value) else value for value in flat.flat], np.float64).reshape(flat.shape)


def shown(value: object) -> str:
    """The value as errors show it: -1.0, not np.float64(-1.0), no number of 401 digits, and 100 letters at most."""
    if _is_huge(value):
        return "a number too large for float64"
    if type(value) in (list, tuple):
        return f"[{', '.join(map(shown, value[:3]))}{', …' if len(value) > 3 else ''}]"  # type: ignore[index, arg-type]
    return f"{value.item() if isinstance(value, np.generic) else value!r:.100}"


def check_positive(name: str, value: object, remedy: str) -> float:
    """The value as a float, or an error that names the parameter, the value and a remedy."""
    if is_number(value) and 0.0 < float(value) < np.inf:
        return float(value)
    raise InvalidParameter(f"`{name}` must be positive, got {shown(value)}. {remedy}")


def check_count(name: str, value: object, remedy: str, *, least: int = 1) -> int:
    """The value as a whole number from `least` on, or an error as above."""
    if isinstance(value, int | np.integer) and not isinstance(value, bool) and least <= value < 2**63:
        return int(value)
    raise InvalidParameter(f"`{name}` must be a whole number from {least} on, got {shown(value)}. {remedy}")


def check_share(name: str, value: object, most: float, remedy: str) -> float:
    """The value as a float from 0 to `most`, or an error as above."""
    if is_number(value) and 0.0 <= float(value) <= most:
        return float(value)
    raise InvalidParameter(f"`{name}` must be a number from 0 to {most:g}, got {shown(value)}. {remedy}")


def check_noise(value: Any, *, zero: bool = False) -> float:
    """The noise as a float, positive or, with `zero`, 0 too."""
    if zero and is_number(value) and float(value) == 0.0:
        return 0.0
    noise = check_positive("noise", value, "For noise-free data pass noise=1e-10.")
    if noise > LARGEST:
        raise InvalidParameter(f"`noise` must be at most {LARGEST:g}, got {noise:g}. Scale the kernel down instead.")
    return noise


def check_flag(name: str, value: Any) -> bool:
    """True or False; a word such as "no" would count as true."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise InvalidParameter(f"`{name}` must be True or False, got {value!r}.")


def check_costs(costs: Any, n: int) -> Annotated[Array, "n"]:
    try:
        found = as_floats(costs)
    except (TypeError, ValueError):
        found = np.zeros(0)
    if found.shape != (n,) or not ((found > 0) & np.isfinite(found)).all():
        some = ", ".join(map(shown, np.asarray(costs, dtype=object).reshape(-1)[:3]))
        raise InvalidInput(f"`costs` must be {n} positive numbers, one for each row, got [{some}] and so on.")
    return found


def check_range(values: Annotated[Array, "of a kernel"]) -> Array:
    """The values, or an error where one is too large for float64 arithmetic, or not a number."""
    if values.size and not (values.max() <= LARGEST and values.min() >= -LARGEST):
        worst = values[~(np.abs(values) <= LARGEST)].flat[0]
        raise InvalidInput(
            f"Values of the kernel must stay below {LARGEST:g}, got {worst:g}: squares overflow float64. "
            "Scale the features to about [0, 1] first, or the kernel down."
        )
    return values


def check_choice(name: str, value: Any, choices: tuple[Any, ...]) -> None:
    if value not in choices:
        listed = ", ".join(repr(c) for c in choices)
        raise InvalidParameter(f"`{name}` must be one of {listed}, got {value!r}.")


def check_levels(levels: Any) -> int | None:
    """None for exact, or the number of levels."""
    most = limits.MAX_LEVELS
    if levels is None:
        return None
    if isinstance(levels, int | np.integer) and not isinstance(levels, bool) and 2 <= levels <= most:
        return int(levels)
    raise InvalidParameter(
        f"`levels` must be None (exact) or a whole number from 2 to {most}, got {shown(levels)}. {most} is close to "
        "exact."
    )


def check_rows(estimator: Any, X: Any, *, reset: bool, y: Any = "no_validation", **options: Any) -> Any:
    """X (and y) as finite floats, dense or canonical CSR; the caller's arrays stay as they are."""
    X = canonical(X)  # first: scikit-learn converts sparse matrices without a check
    check_whole(y, "y")
    dtypes = (np.float32, np.float64) if _is_short(X) else (np.float64, np.float32)
    kind = {"accept_sparse": "csr", "dtype": dtypes, "reset": reset, "accept_large_sparse": True}
    try:
        checked = validate_data(estimator, X, y, **kind, **options)
    except OverflowError:  # a Python integer of any size
        raise InvalidInput("A value is too large for float64 (beyond 1.8e308). Divide the data first.") from None
    except ValueError as error:
        for values, name in ((X, "X"), (y, "y")):
            complain_of_gaps(values, name)
        raise InvalidInput(str(error)) from None
    rows, *others = checked if isinstance(checked, tuple) else (checked,)
    rows = rows if rows is X else canonical(rows)
    return (rows, *others) if others else rows


def _is_short(X: Any) -> bool:
    """Whether X has numbers of at most two bytes, such as pixels: float32 holds them as they are, in half the room."""
    dtype = getattr(X, "dtype", None)
    return isinstance(dtype, np.dtype) and dtype.kind in "biuf" and dtype.itemsize <= 2


def complain_of_gaps(values: Any, name: str) -> None:
    """An error that says where the first NaN or infinity is; nothing where there is none, or what is no number."""
    if values is None:
        return
    sparse = values.tocoo() if sp.issparse(values) else None
    try:
        if sparse is None and hasattr(values, "to_numpy"):  # a table of pandas, whose gaps may be pandas.NA
            values = values.to_numpy(np.float64, na_value=np.nan)
        numbers = np.asarray(values if sparse is None else sparse.data)
        if numbers.dtype.kind not in "fO":
            return
        numbers = numbers.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        return
    bad = np.argwhere(~np.isfinite(numbers))
    if not len(bad):
        return
    first = tuple(bad[0])
    place = first if sparse is None else (sparse.row[first], sparse.col[first])
    found = "NaN" if np.isnan(numbers[first]) else str(numbers[first])
    raise InvalidInput(
        f"`{name}` must be finite numbers, got {found} at {name}[{', '.join(map(str, place))}], {len(bad):,} such "
        "value(s) in all. Leave these rows out, or fill the gaps: sklearn.impute.SimpleImputer() before the model in "
        "a Pipeline does it."
    )


def check_whole(values: Any, name: str) -> None:
    """Complain of masked entries, which others would read, and of sparse matrices with indices out of range."""
    if np.ma.isMaskedArray(values) and np.ma.getmaskarray(values).any():
        hidden = int(np.ma.getmaskarray(values).sum())
        raise InvalidInput(
            f"`{name}` has {hidden} masked values, which would be taken as they lie below the mask. Fill them, such as "
            f"with {name}.filled(0), or leave those rows out."
        )
    if sp.issparse(values):
        check_sparse(values, f"The sparse `{name}`")


def canonical(X: Annotated[Any, "n, d"]) -> Any:
    """Dense X as it is; sparse X as CSR with sorted int32 indices and no duplicates, in arrays of its own where needed.

    Compiled distances refuse int64 indices or sort them in place, and sums of squares take duplicates one by one.
    """
    check_whole(X, "X")
    if not sp.issparse(X):
        return X
    out = sp.csr_matrix(X)  # a view: only its attributes are ours
    if out.indptr[-1] < out.data.size:  # room for more entries
        out = sp.csr_matrix((out.data[: out.indptr[-1]], out.indices[: out.indptr[-1]], out.indptr), shape=out.shape)
    if not rises_in_rows(out.indptr, out.indices):
        out = out.copy()
        out.sum_duplicates()
    out.has_canonical_format = True
    if out.indices.dtype != np.int32 and max(out.nnz, *out.shape) <= np.iinfo(np.int32).max:
        out = sp.csr_matrix((out.data, out.indices.astype(np.int32), out.indptr.astype(np.int32)), shape=out.shape)
    return out


def check_weight(sample_weight: Any, X: Any) -> Array | None:
    """Weights ≥ 0, not all zero, or None."""
    if sample_weight is None:
        return None
    check_whole(sample_weight, "sample_weight")
    try:
        weight = np.asarray(_check_sample_weight(sample_weight, X, dtype=np.float64))
    except OverflowError:
        raise InvalidInput("A weight is too large for float64. Divide `sample_weight` first.") from None
    except ValueError as error:
        complain_of_gaps(sample_weight, "sample_weight")
        raise InvalidInput(str(error)) from None
    if (weight < 0).any() or not weight.any():
        raise InvalidInput(f"`sample_weight` must be ≥ 0 and not all zero, got a smallest value of {weight.min():g}.")
    some = weight[weight > 0]
    if some.max() > LARGEST or some.min() < 1.0 / LARGEST:
        raise InvalidInput(
            f"`sample_weight` must be 0 or from {1.0 / LARGEST:g} to {LARGEST:g}, got values from {some.min():g} to "
            f"{some.max():g}. Divide it by its mean first."
        )
    return weight


def check_classes(y: Annotated[Array, "n"]) -> None:
    try:
        check_classification_targets(y)
    except ValueError as error:
        raise InvalidInput(str(error)) from None


def check_draws(n_samples: object, random_state: RandomSource) -> tuple[int, np.random.Generator]:
    """How many draws, and the random numbers for them."""
    count = check_count("n_samples", n_samples, "The default is 1.")
    return count, np.random.default_rng(draw(random_state, 2**31))
