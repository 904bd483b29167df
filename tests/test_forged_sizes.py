"""Sizes that a forged file or state declares: refused by one clear error, before memory is asked for."""

import contextlib
import gzip
import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import saccade
from saccade import GPClassifier, GPRegressor, OneClassGP
from saccade._core import limits, model_file
from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput, InvalidParameter, ModelFileError, SaccadeError
from saccade.cli.tables.columns import TableReading
from saccade.cli.tables.read import read
from saccade.kernels import HIK, RBF
from saccade.localize import Localizer, TileSearch
from tests.memory import at_most

HUGE = 2_000_000_000
MEMORY = 1 << 30
rng = np.random.default_rng(0)
X = sp.csr_matrix(np.where(rng.random((12, 5)) < 0.5, rng.random((12, 5)), 0.0))
Y = np.where(X.toarray()[:, 0] > 0.2, "a", "b")


def saved(model: Any, path: Path) -> tuple[dict[str, Any], dict[str, Array]]:
    target = np.asarray(X.sum(axis=1)).ravel() if isinstance(model, GPRegressor) else Y
    model.fit(X, target).save(path, examples=True)
    return model_file.read(path)


@pytest.mark.parametrize("model", [GPClassifier(RBF()), GPRegressor(RBF()), OneClassGP(RBF()), GPClassifier(HIK())])
def test_features_of_rows_in_a_model_file(model: Any, tmp_path: Path) -> None:
    header, tensors = saved(model, tmp_path / "m")
    model_file.write(tmp_path / "m", header | {"features": HUGE}, tensors)
    assert (tmp_path / "m").stat().st_size < 3000
    with at_most(MEMORY), pytest.raises(ModelFileError, match=r"2,000,000,000 features"):
        saccade.load(tmp_path / "m")


def test_rows_too_wide_to_be_loaded_are_not_saved(tmp_path: Path) -> None:
    """A file that could not be read again would be a trap."""
    wide = sp.csr_matrix((X.data, X.indices, X.indptr), shape=(12, limits.SPARSE_SIDE + 1))
    with pytest.raises(InvalidInput, match="zero throughout"):
        GPClassifier(RBF()).fit(wide, Y).save(tmp_path / "m", examples=True)
    narrower = sp.csr_matrix((X.data, X.indices, X.indptr), shape=(12, limits.SPARSE_SIDE))
    GPClassifier(RBF()).fit(narrower, Y).save(tmp_path / "m", examples=True)
    assert saccade.load(tmp_path / "m").predict(narrower).tolist() == Y.tolist()


def test_a_long_label_is_not_repeated_for_every_row(tmp_path: Path) -> None:
    header, tensors = saved(GPClassifier(RBF()), tmp_path / "m")
    header["classes"]["dtype"] = f"<U{limits.LABEL_BYTES // 4 // 2}"  # two labels of 32 MB, and 4,800 rows
    times = 400
    rows = {name: np.tile(tensors[f"examples_{name}"], times) for name in ("data", "indices", "y")}
    starts = tensors["examples_indptr"]
    rows["indptr"] = np.concatenate([[0], (starts[1:] + starts[-1] * np.arange(times)[:, None]).ravel()])
    tensors |= {f"examples_{name}": array for name, array in rows.items()}
    header["examples"] = 12 * times
    model_file.write(tmp_path / "m", header, tensors)
    with at_most(MEMORY):
        assert saccade.load(tmp_path / "m").classes_.tolist() == ["a", "b"]


@pytest.mark.parametrize("name", ["inducing", "variance_rank", "max_iter"])
def test_numbers_among_the_parameters(name: str, tmp_path: Path) -> None:
    """They ask for no more than there are rows."""
    header, tensors = saved(GPClassifier(HIK()), tmp_path / "m")
    header["parameters"][name] = HUGE
    model_file.write(tmp_path / "m", header, tensors)
    with at_most(MEMORY), contextlib.suppress(ModelFileError):
        saccade.load(tmp_path / "m")


# ---- searches


@pytest.mark.parametrize(
    ("bounds", "tile"), [((2048, 2_048_000_000_000), 1024), ((1e15, 1e15), 1), ((1e6, 1e6), 1), ((64, 64), 10**400)]
)
def test_tiles(bounds: Any, tile: int) -> None:
    with at_most(MEMORY), pytest.raises(InvalidParameter, match="`tile`"):
        TileSearch(bounds, tile)


def test_state_of_a_tile_search() -> None:
    state = TileSearch((2048, 2048), random_state=0).to_state()
    state["bounds"][3] = 2_048_000_000_000
    with at_most(MEMORY), pytest.raises(ModelFileError, match="`tile`"):
        TileSearch.from_state(state)


def test_looks_of_a_search() -> None:
    """Covariances of all looks are held: 10⁵ of them would take 80 GB, and a state declares them in 2 MB."""
    search, many = Localizer((100, 100), random_state=0), limits.LOOKS + 1
    boxes = np.tile([10.0, 10.0, 20.0, 20.0], (many, 1))
    with pytest.raises(InvalidInput, match=r"at most 10,000 looks"):
        search.tell(boxes, np.zeros(many))
    state = search.to_state() | {"boxes": boxes.tolist(), "told": [0.0] * many}
    with pytest.raises(ModelFileError, match=r"at most 10,000 looks"):
        Localizer.from_state(state)


# ---- tables of the command line


def archive(path: Path, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(f"{name}.npy", content)
    return path


def npy(array: Array, shape: tuple[int, ...] | None = None) -> bytes:
    """As numpy.save writes it; another shape is a forgery."""
    out = io.BytesIO()
    told = {"descr": array.dtype.str, "fortran_order": False, "shape": shape or array.shape}
    np.lib.format.write_array_header_1_0(out, told)
    return out.getvalue() + array.tobytes()


def refused(path: Path, match: str) -> None:
    with at_most(MEMORY), pytest.raises(InvalidInput, match=match):
        read(path, TableReading(), need_labels=False)


def test_an_archive_that_unpacks_to_gigabytes(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.npz", "w", zipfile.ZIP_DEFLATED) as file, file.open("X.npy", "w") as member:
        member.write(npy(np.zeros(0), (6144, 12_288)))
        for _ in range(6144):
            member.write(bytes(8 * 12_288))
    assert (tmp_path / "x.npz").stat().st_size < 1_000_000
    refused(tmp_path / "x.npz", "unpacks to 603,979")


def test_an_archive_whose_array_is_shorter_than_it_says(tmp_path: Path) -> None:
    refused(archive(tmp_path / "x.npz", X=npy(np.ones(4), (HUGE, 50))), "damaged")


def test_a_sparse_archive_of_huge_width(tmp_path: Path) -> None:
    sp.save_npz(tmp_path / "x.npz", sp.csr_matrix((X.data, X.indices, X.indptr), shape=(12, HUGE)))
    refused(tmp_path / "x.npz", r"2,000,000,000 features")


def test_a_sparse_archive_that_unpacks_to_gigabytes(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.npz", "w", zipfile.ZIP_DEFLATED) as file:
        for name, array in (("format", np.array(b"csr")), ("shape", np.array([2, 5])), ("indptr", np.zeros(3, int))):
            file.writestr(f"{name}.npy", npy(array))
        for name in ("data", "indices"):
            with file.open(f"{name}.npy", "w") as member:
                member.write(npy(np.zeros(0), (70_000_000,)))
                for _ in range(70):
                    member.write(bytes(8_000_000))
    refused(tmp_path / "x.npz", "unpacks to")


def test_a_gzipped_table_that_unpacks_to_gigabytes(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "x.csv.gz", "wb") as file:
        for _ in range(60):
            file.write(b"0," * 5_000_000)  # one line: it is counted as it is unpacked
    assert (tmp_path / "x.csv.gz").stat().st_size < 1_000_000
    refused(tmp_path / "x.csv.gz", "unpacks to")


def test_a_svmlight_file_of_huge_width(tmp_path: Path) -> None:
    (tmp_path / "x.svm").write_text(f"1 1:0.5\n2 {HUGE}:0.5\n")
    refused(tmp_path / "x.svm", r"2,000,000,000 features")


def test_a_parquet_file_that_unpacks_to_gigabytes(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetWriter(tmp_path / "x.parquet", pa.schema([("a", pa.float64())])) as writer:
        for _ in range(10):
            writer.write_table(pa.table({"a": np.zeros(8_000_000)}))
    refused(tmp_path / "x.parquet", "unpacks to")


def test_a_short_array_file(tmp_path: Path) -> None:
    (tmp_path / "x.npy").write_bytes(npy(np.ones(4), (HUGE, 50)))
    refused(tmp_path / "x.npy", "damaged")


def test_real_tables_are_packed_less(tmp_path: Path) -> None:
    """A matrix with one entry in fifty above zero is far from the limit."""
    table = np.where(rng.random((2000, 500)) < 0.02, rng.random((2000, 500)), 0.0)
    np.savez_compressed(tmp_path / "x.npz", X=table)
    assert table.nbytes < limits.UNPACKED_TIMES / 2 * (tmp_path / "x.npz").stat().st_size
    assert issubclass(InvalidInput, SaccadeError)
    np.testing.assert_array_equal(read(tmp_path / "x.npz", TableReading(), need_labels=False).X, table)


# ---- chains of pictures


@pytest.mark.parametrize(
    "step", [{"name": "HOG", "size": 1 << 20, "cell": 1 << 19}, {"name": "Resize", "size": 1 << 20}]
)
def test_pictures_of_a_chain(step: dict[str, Any], tmp_path: Path) -> None:
    """A few numbers ask for a picture of 10¹² pixels before it is turned into a short vector."""
    from saccade.features import HOG

    pictures = rng.integers(0, 255, (6, 40, 40, 3), np.uint8)
    chain = HOG(size=(32, 32), cell=16)
    model = OneClassGP(scale=None).fit(chain.fit_transform(list(pictures)))
    model.save(tmp_path / "m", features=chain)
    header, tensors = model_file.read(tmp_path / "m")
    own = {"size": {"tuple": [step["size"]] * 2}} | ({"cell": step["cell"]} if "cell" in step else {})
    if step["name"] == "HOG":
        header["pictures"][0]["parameters"] |= own
    else:
        header["pictures"].insert(0, {"name": "Resize", "parameters": own})
    model_file.write(tmp_path / "m", header, tensors)
    with at_most(MEMORY), pytest.raises(SaccadeError, match="pixels"):
        saccade.load(tmp_path / "m").decision_function(list(pictures))
