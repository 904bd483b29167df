"""Write the tables of README and docs/measured.md from the committed results: `python benchmarks/readme_table.py`."""

import re
from pathlib import Path
from typing import Any

from defaults_tables import classification, novelty
from harness import arguments
from measured_lines import (
    ask_lines,
    find,
    find_lines,
    learning_lines,
    notice_lines,
    picture_lines,
    results,
)

HERE = Path(__file__).parent
PAGES = ("README.md", "docs/measured.md")


def rival_lines() -> list[tuple[str, str]]:
    """Beside the authors' C++: only what was measured in one run."""
    units = results("side_by_side")["units"]

    def line(what: str) -> str:
        row = units[what]
        return f"{row['C++, 1 thread']}, {row['ours, 1 thread']}, {row['ours, 2 threads']}"

    kinds = ("train to 1e-6", "train to 1e-2", "classify 10,000, exact", "classify 10,000, 256 levels")
    return [
        (
            "side by side in one run on a second machine, 10,000 × 1,000, exact: authors' C++ (1 thread), ours (1 "
            "thread), ours (2 threads): train to 1e-6; to 1e-2, the paper's stop; classify 10,000; the same quantised",
            "; ".join(line(kind) for kind in kinds) + " units",
        )
    ]


def front_lines() -> list[str]:
    """README's: six lines in plain units."""
    bench, fashion = results("bench"), results("fashion")
    experiments = HERE.parent / "experiments"
    scenes, boxes = (results(name, experiments) for name in ("scenes15", "find_boxes"))
    fitted, pixels = find(bench["fit"], n=1_000_000), fashion["models"][0]
    deep, dog = scenes["methods"]["deep"], find(boxes["rows"], way="ours", size_known=False, noise=0.0, prior=True)
    asked = results("defaults_novelty", experiments)["summary"]["tables, clean"]
    rank, peer = (asked[name]["rank"] for name in ("OneClassGP()", "KNN (PyOD)"))
    exact, grid = bench["classify"]
    table = [
        ("train on a million examples, 1,000 features", f"{fitted['seconds']['median']:.0f} s"),
        (
            "train on 60,000 pictures of clothes (Fashion-MNIST, pixels), ten classes",
            f"{pixels['fit, s']:.0f} s; right {100 * pixels['accuracy']:.1f} %, "
            f"says {100 * pixels['mean confidence']:.1f} %",
        ),
        (
            "classify one example, 200 values; from quantised tables",
            f"{exact['µs an example']:.1f} µs; {grid['µs an example']:.2f} µs",
        ),
        (
            "recognise 15 kinds of scenes, deep features; an SVM with the same kernel",
            f"{100 * deep['gp']:.1f} %; {100 * deep['svm']:.1f} %",
        ),
        (
            "notice what is new, mean rank of ten detectors on 34 tables; nearest neighbours",
            f"{rank:.1f}; {peer:.1f}",
        ),
        (
            f"find a dog of {100 * boxes['settings']['median_area']:.1f} % of a photograph's area (median; "
            "a noise-free judge, prior of other photographs)",
            f"{dog['looks']:.0f} looks, {100 * dog['solved']:.1f} % found",
        ),
    ]
    machine = bench["machine"]
    return [
        "| what | figure |",
        "|---|---|",
        *[f"| {a} | {b} |" for a, b in table],
        "",
        f"{machine['cpu']}, {machine['threads']} cores, no GPU. All figures and peers: [measured](docs/measured.md).",
    ]


FITS = (
    "exact, to 1e-6",
    "exact, to 1e-2",
    "exact, noise 0.1, to 1e-2",
    "Laplace, ten classes",
    "tuned: exponent and noise",
)


def of(row: dict[str, Any], name: str) -> str:
    """Median and range, or the one value."""
    found = row[name]
    if found["most"] - found["least"] < 1e-9:
        return f"{found['median']:.3g}"
    return f"{found['median']:.3g} ({found['least']:.3g} to {found['most']:.3g})"


def share(row: dict[str, Any]) -> str:
    return f"{100 * row['outside the products']['median']:.0f} %"


def fit_lines() -> list[tuple[str, str]]:
    bench, fashion, start = results("bench"), results("fashion"), results("start_up")
    million, memory = find(bench["fit"], n=1_000_000), find(bench["scale"], n=1_000_000)["GB beyond input"]
    tight, loose, paper, laplace, tuned = (find(bench["fit"], fit=name) for name in FITS)
    exact, grid = bench["classify"]
    one = find(bench["product"], n=50_000, levels="exact", dtype="float32", columns=1)
    binned, ten = (find(bench["product"], n=300_000, levels=255, dtype="float32", columns=m) for m in (1, 10))
    pixels = fashion["models"][0]
    return [
        (
            "train on 1,000,000 × 1,000, 100 non-zeros a row, binned to 255 levels",
            f"{of(million, 'seconds')} s, {memory:.2f} GB beyond the input",
        ),
        (
            "train on Fashion-MNIST, 60,000 × 784 pixels, 10 classes, calibrated",
            f"{pixels['fit, s']:.0f} s; accuracy {pixels['accuracy']:.3f}, mean confidence "
            f"{pixels['mean confidence']:.3f}, calibration error {pixels['calibration error']:.3f}",
        ),
        (
            "train on 50,050 × 1,000, exact (the paper, one core of 2012: 321 s)",
            f"{of(paper, 'seconds')} s",
        ),
        ("train on 10,000 × 1,000, exact, noise 0.01, to 1e-6", f"{of(tight, 'units')} units"),
        ("the same to 1e-2", f"{of(loose, 'units')} units"),
        ("Laplace's approximation, 12,000 × 1,000, ten classes", f"{of(laplace, 'seconds')} s"),
        ("learn exponent and noise on 50,050 × 1,000 by gradient", f"{of(tuned, 'seconds')} s"),
        (
            "how much quicker two threads train than one; share of the time outside the products, in the order above",
            "; ".join(
                f"{of(row, 'gain of the threads')} ×, {share(row)}"
                for row in (million, paper, tight, loose, laplace, tuned)
            ),
        ),
        (
            "one product: exact at n = 50,000; binned at 300,000; binned, ten columns",
            f"{one['units']:.1f}; {binned['units']:.1f}; {ten['units']:.1f} units",
        ),
        (
            "classify an example (200 non-zeros), exact and quantised",
            f"{exact['µs an example']:.1f} and {grid['µs an example']:.2f} µs",
        ),
        (
            "first use after install: compiling everything, once; `import saccade` on top of scikit-learn",
            f"{start['compilation in total, s']:.1f} s; {start['saccade adds, s']:.2f} s",
        ),
    ]


def lines() -> list[str]:
    parts = (fit_lines, rival_lines, learning_lines, notice_lines, ask_lines, find_lines, picture_lines)
    table, machine = [line for part in parts for line in part()], results("bench")["machine"]
    packages = machine["packages"]
    return [
        "| what | how long |",
        "|---|---|",
        *[f"| {a} | {b} |" for a, b in table],
        "",
        f"{machine['cpu']}, {machine['threads']} threads, Python {machine['python']}, numba {packages['numba']}.",
        "A unit is one `scipy.sparse` matrix–vector product on the same matrix in the same run, about the least that",
        "reading the data can cost. Histograms are synthetic (`saccade.datasets.synthetic`) and measure time alone.",
        "`make bench ARGS=--full` and the scripts in benchmarks/ repeat it.",
    ]


def with_tables(text: str) -> str:
    """A page with its tables anew."""
    experiments = HERE.parent / "experiments"
    makers = {
        "front": front_lines,
        "measured": lines,
        "classification": lambda: classification(results("defaults_classify", experiments)),
        "novelty": lambda: novelty(results("defaults_novelty", experiments)),
    }
    pattern = r"(<!-- table: (\w+) -->\n).*?(<!-- /table -->)"
    return re.sub(pattern, lambda m: m[1] + "\n".join(makers[m[2]]()) + "\n" + m[3], text, flags=re.S)


def main() -> None:
    parser = arguments(__doc__)
    parser.set_defaults(out=HERE.parent)
    out = parser.parse_args().out
    for page in PAGES:
        (out / page).parent.mkdir(exist_ok=True)
        (out / page).write_text(with_tables((HERE.parent / page).read_text()))


if __name__ == "__main__":
    main()
