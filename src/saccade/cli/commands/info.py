"""`saccade info`: what is in a model file."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from saccade import features
from saccade._core import model_file
from saccade.cli import console


def info(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="A model file that `saccade fit` or `saccade novelty` wrote.")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print all facts as JSON, for programs.")] = False,
) -> None:
    """Show what is in MODEL, after checking that it is whole and unchanged."""
    facts = _facts(model)
    if as_json:
        print(json.dumps(facts, indent=2))
    else:
        console.table(_rows(facts))


def _facts(path: Path) -> dict[str, Any]:
    from saccade.estimators.model_file import load
    from saccade.loading import KEY
    from saccade.loading import load as load_whole

    header, _ = model_file.read(path)
    model = load(path)  # checks that what is inside fits together
    steps = features.load_features(path).steps if header.get("pictures") else []
    if KEY in header:
        load_whole(path)
    return {
        "file": str(path),
        "bytes": path.stat().st_size,
        "digest": "ok",
        "format": header["format"],
        "saccade": header["saccade"],
        "estimator": header["estimator"],
        "parameters": header["parameters"],
        "kernel": header.get("kernel"),
        "described": repr(model.kernel_),
        "examples": header.get("examples"),
        "classes": model.classes_.tolist() if hasattr(model, "classes_") else None,
        "threshold": getattr(model, "offset_", None),
        "features": model.n_features_in_,
        "feature_names": header["feature_names"],
        "tables": None if "examples" in header else _tables(header["tables"], model.tables_),
        "variance": _variance_rank(model),
        "pictures": [type(step).__name__ for _, step in steps] or None,
        "finds": header[KEY]["label"] if KEY in header else None,
        "noise": model.noise_,
        "iterations": model.n_iter_,
        "residual": model.residual_,
        "converged": model.converged_,
    }


def _tables(kind: str, tables: Any) -> dict[str, Any]:
    arrays = [getattr(tables, name) for name in tables.__dataclass_fields__]
    rows, outputs = tables.T.shape
    return {"kind": kind, "rows": rows, "outputs": outputs, "bytes": sum(array.nbytes for array in arrays)}


def _variance_rank(model: Any) -> int | None:
    """Directions behind the tables of the variance, None without a variance."""
    from saccade.inference.posterior.compressed import Compressed

    gp = getattr(model, "gp_", None)
    norms = gp.norms if isinstance(gp, Compressed) else None
    return None if norms is None else sum(tables.rank for tables in norms)


def _rows(facts: dict[str, Any]) -> list[tuple[str, str]]:
    tables = facts["tables"]
    rows = [
        ("estimator", facts["estimator"]),
        ("kernel", facts["described"] if facts["kernel"] is None else _kernel(facts["kernel"])),
        ("noise", f"{facts['noise']:.4g}"),
    ]
    if facts["classes"] is not None:
        rows.append(("classes", _counted(facts["classes"])))
    if facts["threshold"] is not None:
        rows += _novelty(facts["threshold"], facts["parameters"])
    rows.append(("features", _counted(facts["feature_names"]) if facts["feature_names"] else f"{facts['features']:,}"))
    if facts["pictures"]:
        rows.append(("pictures", " → ".join(facts["pictures"])))
    if facts["finds"] is not None:
        rows.append(("finds", f"{console.printable(str(facts['finds']))}, trained on boxes for `saccade find`"))
    if facts["variance"]:
        bound = "about an upper bound" if tables["kind"] == "GridTables" else "upper bound"
        rows.append(("variance", f"{bound} of rank {facts['variance']}"))
    solved = f"in {console.count(facts['iterations'], 'iteration')}"
    doubt = "" if facts["converged"] else ", not converged"
    return [
        *rows,
        _content(facts),
        ("solved", f"{solved}, residual {facts['residual']:.1e}{doubt}"),
        (
            "file",
            f"{facts['file']}, {console.size(facts['bytes'])}, format {facts['format']}, saccade {facts['saccade']}",
        ),
        ("digest", "ok: whole and unchanged"),
    ]


def _novelty(threshold: float, chosen: dict[str, Any]) -> list[tuple[str, str]]:
    if "measure" not in chosen:  # SVDD
        return [
            ("novelty", "distance from the centre of a ball"),
            ("threshold", f"{threshold:.4g}, for nu {chosen['nu']:g}"),
        ]
    return [
        ("novelty", f"{chosen['measure']} by {chosen['inference']}"),
        ("threshold", f"{threshold:.4g}, for contamination {chosen['contamination']:g}"),
    ]


def _counted(names: list[Any]) -> str:
    return f"{len(names):,}: {console.few(names)}"


def _content(facts: dict[str, Any]) -> tuple[str, str]:
    tables = facts["tables"]
    if tables is None:
        return "training rows", f"{facts['examples']:,} are in this file: it has no tables"
    return "tables", f"{tables['kind']}, {tables['rows']:,} × {tables['outputs']:,}, {console.size(tables['bytes'])}"


def _kernel(kernel: dict[str, Any]) -> str:
    parts = []
    for transform in kernel["transforms"]:
        if "parts" in transform:
            parts.append(" + ".join(map(_kernel, transform["parts"])))
            continue
        pieces = len((transform.get("knots") or [[]])[0])
        value = transform.get("eta", f"{len(transform['w'])} weights" if "w" in transform else f"{pieces} pieces")
        parts.append(f"{transform['name']}({value})")
    parts.append(f"scale={kernel['scale']:.4g}")
    return f"HIK({', '.join(parts)})"
