"""Every script in experiments/ and benchmarks/ runs to its end, at its smallest size, on made-up data.

A new script without a line in SMALLEST fails the first test. Results go to a temporary folder, never to the committed
ones.
"""

import importlib
import importlib.util
import json
import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.experiments.tiny_data import write_all

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("experiments", "benchmarks")
KEPT = ("experiments/results", "experiments/figures", "benchmarks/results", "docs/images")


class Small(NamedTuple):
    """How to make a script small: its arguments, with {data}, {cache}, {out}, {src} to be filled in, and constants."""

    arguments: str
    constants: Mapping[str, Any] = MappingProxyType({})  # "module.NAME": the value for the test
    makes: tuple[str, ...] | None = None  # files in --out; None: a record and, for an experiment, a figure of its name


FEW = "--cache {cache} --out {out} --splits 2"
TINY = "--cache {cache} --out {out} --data {data}"
CALTECH_SIZES = {"caltech101_fig3.SIZES": (3, 4), "caltech101_fig3.CHOSEN_AT": 4, "caltech101_fig3.MOST_TEST": 3}
ONE_CLASS = {"one_class_kernels.TRAIN": 4, "one_class_kernels.LEAVES": 20}
SMALLEST = {
    "experiments/approximations_fig2.py": Small("--out {out} --data {data}", {"approximations_data.TRAIN": 20}),
    "experiments/approximations_table2.py": Small(
        f"{TINY} --splits 1 --classes 1",
        {"approximations_data.WORDS": 20, "small_pictures.WORDS": 20, "approximations_table2.NEW": 50}
        | {"approximations_table2.SIZES": (5, 10), "approximations_data.TRAIN": 6, "approximations_table2.TRAIN": 6},
        ("results/approximations_table2.json", "figures/approximations_table2.png", "figures/approximations_fig1.png"),
    ),
    "experiments/ask_approximations_fig3.py": Small(
        "--cache {cache} --out {out} --tasks 1 --starts 2",
        {"approximations_data.WORDS": 20, "ask_approximations_fig3.CATEGORIES": 3, "ask_approximations_fig3.START": 1}
        | {"ask_approximations_fig3.QUESTIONS": 2},
    ),
    "experiments/ask_batches.py": Small(
        "--cache {cache} --out {out} --runs 2 --tasks wine",
        {"ask_batches.BATCHES": (1, 5, 10), "ask_batches.LABELS": 20},
    ),
    "experiments/ask_data.py": Small(
        TINY,
        {"small_pictures.WORDS": 20, "ask_data.VOCABULARY": 40, "ask_data.PICTURES": 20},
        makes=(),
    ),
    "experiments/ask_grown.py": Small(
        "--out {out} --campaigns 1 --processes 1", {"ask_grown.DRAWS": 200}, ("results/ask_grown.json",)
    ),
    "experiments/ask_kapoor_fig4.py": Small(
        "--cache {cache} --out {out} --runs 2",
        {"ask_kapoor_fig4.VALIDATION": 3, "ask_kapoor_fig4.QUESTIONS": 2, "ask_kapoor_fig4.LONG": 3}
        | {"ask_kapoor_fig4.SHOWN": ("airplanes", "chair")},
        ("results/ask_kapoor_fig4.json", "figures/ask_kapoor_fig4.png", "figures/ask_kapoor_fig5.png"),
    ),
    "experiments/ask_kapoor_fig6.py": Small(
        "--cache {cache} --out {out} --runs 2",
        {"ask_kapoor_fig6.CLASSES": ["airplanes", "Faces", "Leopards"], "ask_kapoor_fig6.LABELS": 9},
    ),
    "experiments/ask_low_budget.py": Small(
        "--cache {cache} --out {out} --runs 2 --slow-runs 1 --logistic-runs 1 --tasks wine",
        {"ask_low_budget.BATCH": 10, "ask_low_budget.DRAWS": 20},
    ),
    "experiments/ask_pool_labels.py": Small(
        "iris caltech-even --cache {cache} --out {out} --runs 2",
        {"ask_pool_labels.SIZES": (10,), "ask_pool_labels.SLOW_RUNS": 1},
    ),
    "experiments/ask_more_sets.py": Small(
        "--cache {cache} --out {out} --runs 2 --tasks wine",
        {"ask_more_sets.BATCH": 10},
        ("results/ask_more_sets.json",),
    ),
    "experiments/ask_versus_random.py": Small("--cache {cache} --out {out} --runs 2 --tasks wine"),
    "experiments/ask_stop.py": Small(
        "--cache {cache} --out {out} --campaigns 2",
        {"ask_stop_campaign.MADE_UP": 200, "ask_stop_campaign.MOST": 120, "ask_stop.LONGEST": 50},
    ),
    "experiments/ask_target.py": Small(
        f"{TINY} --campaigns 1 --real 1 --only digits 'made up'",
        {
            "ask_target.POOL": 200,
            "ask_target.HELD_OUT": 60,
            "ask_target.LONGEST": 20,
            "ask_target.MOST": 120,
            "ask_target.DRAWS": 100,
        }
        | {"ask_stop_campaign.MADE_UP": 200},
        ("results/ask_target.json",),
    ),
    "experiments/ask_wrong_labels.py": Small(
        f"{TINY} --runs 2",
        {"ask_wrong_labels.SIZE": 100, "ask_wrong_labels.TEST": 50, "ask_wrong_labels.FOLDS": 2},
    ),
    "experiments/caltech101_fig3.py": Small("--cache {cache} --out {out} --splits 1", CALTECH_SIZES),
    "experiments/choose_descriptors.py": Small("--out {out} --words 20", makes=("results/choose_descriptors.json",)),
    "experiments/defaults_classify.py": Small(
        "--out {out} --sets iris wine --splits 1",
        {"defaults_classify.TOY_SPLITS": 1, "defaults_classify.TEST": 30},
        ("results/defaults_classify.json",),
    ),
    "experiments/defaults_novelty.py": Small("--out {out} --splits 1", {"defaults_novelty_data.TEST": 50}),
    "experiments/evidence_fig3.py": Small("--cache {cache} --out {out} --words 20 --points 2"),
    "experiments/find_all.py": Small(
        "--out {out} --pictures 1 --coverage 2",
        {"find_all.SIDE": 10, "find_all.TARGETS": 8, "find_all.SMALL": 10, "find_all.FEW": 6, "find_all.BATCH": 10}
        | {"find_all.CHECKED": (0.1,), "find_all.GALAXY_TILE": 100},
    ),
    "experiments/find_all_rivals.py": Small(
        "--out {out} --pictures 1 --coverage 1 --processes 1",
        {"find_all_rivals.SMALL": 10, "find_all_rivals.KINDS": {"clustered": ("clustered", 6)}}
        | {"find_all_sets.MOSAIC": 1, "find_all_sets.SIDE": 8, "find_all_sets.RACCOONS": 4},
    ),
    "experiments/find_boxes.py": Small(
        "--out {out} --every 400 --rivals-every 400 --processes 1 --ways ours 'on a grid' 'plain GP, PI'",
        {"find_boxes.NOISES": (0.0,), "find_boxes.MOST": 20, "find_rivals.CANDIDATES": 50},
    ),
    "experiments/find_calibration.py": Small(
        "--out {out} --searches 3 --looks 10 --processes 1 --settings present", {"find_calibration.BATCH": 5}
    ),
    "experiments/find_context.py": Small(
        "--out {out} --photographs 4", {"find_context.MOST": 4, "find_context.FIRST": 0}
    ),
    "experiments/find_objects.py": Small(
        "--cache {cache} --out {out} --pictures 2 --classes Faces --looks 10 --tiles 2",
        {"find_objects.LEARN": 3, "find_objects.HELD": 2, "find_objects.SIDE": 32, "find_objects_words.WORDS": 20},
        ("results/find_objects_mosaic.json", "figures/find_objects_mosaic.png"),
    ),
    "experiments/find_trained.py": Small(
        "--cache {cache} --out {out} --sets raccoon --test 2 --rivals 1 --looks 4",
        {"find_trained.SIDE": 32, "find_trained.OTHERS": ("chair",)},
    ),
    "experiments/find_face.py": Small("--out {out} --starts 1", {"find_face.LOOKS": 10}, ("results/find_face.json",)),
    "experiments/gp_by_looks.py": Small("--out {out} --runs 2"),
    "experiments/known_classes.py": Small(
        f"{TINY} --splits 1", {"small_pictures.WORDS": 20, "known_classes.TRAIN": 24, "known_classes.TEST": 10}
    ),
    "experiments/large_table2.py": Small(
        f"{TINY} --sizes 60 120 --tasks 2",
        {"small_pictures.WORDS": 20, "large_table2.SIZES": (60, 120), "large_table2.WARM": 60},
    ),
    "experiments/likelihoods.py": Small(
        f"{TINY} --splits 1",
        {"small_pictures.WORDS": 20, "likelihoods.TEST": 40, "likelihoods.SIZES": (60, 80, 100)},
        ("results/likelihoods.json",),
    ),
    "experiments/many_classes.py": Small(
        "--out {out} --rows 300",
        {"many_classes.CLASSES": (2, 40), "many_classes.TEST": 100},
        ("results/many_classes.json",),
    ),
    "experiments/novelty_scale.py": Small(
        "--out {out} --data {data} --held 0 --n 100 --rows pixels "
        "--only 'GP-HIK, variance' IsolationForest 'FAISS neighbours'"
    ),
    "experiments/objectives.py": Small(
        "--cache {cache} --out {out} --folder {data} --only hik power",
        {"objectives.A_CLASS": 3, "objectives.MANY": 100, "objectives.WORDS": 20},
    ),
    "experiments/one_class_beta.py": Small(
        "--cache {cache} --out {out} --splits 1",
        {"one_class_beta.MANY": 6, "one_class_beta.ENOUGH": 8, "one_class_beta.BETAS": np.array([0.5, 1.0])}
        | ONE_CLASS,
    ),
    "experiments/one_class_codebooks.py": Small("--cache {cache} --out {out} --splits 1", ONE_CLASS),
    "experiments/one_class_fig3.py": Small(FEW, ONE_CLASS | {"one_class_fig3.SIZES": (2, 4)}),
    "experiments/one_class_fig4.py": Small(
        FEW, ONE_CLASS | {"one_class_fig4.SIZE": 5, "one_class_fig4.BETAS": np.array([0.5, 1.0])}
    ),
    "experiments/one_class_fig5.py": Small(FEW, ONE_CLASS | {"one_class_fig5.SIZE": 5}),
    "experiments/one_class_kernels.py": Small("--cache {cache} --out {out} --splits 1", ONE_CLASS, makes=()),
    "experiments/one_class_table2.py": Small(FEW, ONE_CLASS),
    "experiments/pyramid_match_scale.py": Small("--cache {cache} --out {out}"),
    "experiments/relevance_fig5.py": Small("--out {out} --runs 2 --examples 5 --processes 1"),
    "experiments/scenes15.py": Small("--cache {cache} --out {out} --words 20"),
    "experiments/situations.py": Small(
        "--out {out} --splits 2", {"situations.SIZES": (1, 3, 15), "situations.TEST": 10}
    ),
    "experiments/small_pictures.py": Small(TINY, {"small_pictures.WORDS": 20}, makes=()),
    "experiments/solvers_fig4.py": Small(
        "--out {out} --n 200",
        {"solvers_fig4.REPEATS": 1, "solvers_fig4.DIGITS": 60, "solvers_fig4.LIMIT_S": 1.0},
    ),
    "experiments/unknown_classes.py": Small(
        "--out {out} --splits 1", {"unknown_classes.SIZES": (5,), "unknown_classes.TEST": 50}
    ),
    "experiments/variance_tightness.py": Small(
        "--cache {cache} --out {out} --fashion {data}/fashion-mnist",
        {"variance_tightness.NEW": 20, "variance_tightness.A_CLASS": 3, "variance_tightness.WORDS": 20},
    ),
}


SMALLEST |= {
    "benchmarks/asking.py": Small("--out {out} --rows 5000 --batch-rows 600 --labels 60 --cycles 3"),
    "benchmarks/bench.py": Small("--out {out}/bench.json --scale 100"),
    "benchmarks/before_after.py": Small("{src} {src} --out {out} --most 60 --turns 1 --seconds 0 --only digits"),
    "benchmarks/fashion.py": Small("{data}/fashion-mnist --out {out}"),
    "benchmarks/huge_pictures.py": Small("--out {out} --side 4096"),
    "benchmarks/finding.py": Small(
        "--out {out}",
        {"finding.TRAIN": 60, "finding.EXPLAINED": 20, "finding.REPEATS": 1, "finding.WORDS": 10}
        | {"finding.STEP": 64, "finding.SIZES": (None,), "finding.COARSE": 150, "finding.SHAKEN": 5}
        | {"finding.ELSEWHERE": 10, "finding.OBJECTS": {"chelsea": (120, 20, 330, 230)}},
    ),
    "benchmarks/kernel_block.py": Small(
        "--out {out}", {"kernel_block.CASES": {"digits": (20, 20, 64, 33)}, "kernel_block.ROWS": 4}
    ),
    "benchmarks/label_issues.py": Small(
        "{data}/fashion-mnist --out {out}", {"label_issues.SIZES": (100, 200), "label_issues.EXACT": 100}
    ),
    "benchmarks/layouts.py": Small("--out {out}", {"layouts.SIZES": (300,)}),
    "benchmarks/novelty.py": Small(
        "--out {out} --data {data} --cache {cache}",
        {"novelty.SIZES": (10, 100, 120), "novelty.NEW": 2000, "novelty.REPEATS": 1, "novelty.N": 300}
        | {"novelty.TIMED": 50, "small_pictures.WORDS": 20},
    ),
    "benchmarks/peers.py": Small("--out {out} --most 250 --only 'saccade GPClassifier, HIK'"),
    "benchmarks/pictures.py": Small("--out {out} --many 3", {"pictures.COUNT": 6, "pictures.WORDS": 10}),
    "benchmarks/plot_scale.py": Small("--out {out}", makes=("scale.png",)),
    "benchmarks/readme_table.py": Small("--out {out}", makes=("README.md", "docs/measured.md")),
    "benchmarks/searching.py": Small("--out {out} --repeats 1", {"searching.LOOKS": (0, 12), "searching.SIDE": 20}),
    "benchmarks/start_up.py": Small(
        "--out {out}", {"start_up.REPEATS": 1, "start_up.FIRST_CALL": "print(0.5)", "start_up.EXAMPLE": "pass"}
    ),
    "benchmarks/tuning.py": Small(
        "--out {out}",
        {"tuning.SAMPLES": (120,), "tuning.DIGITS": 120, "tuning.SEEDS": 2, "tuning.SIZES": (150,)}
        | {"tuning.SEARCHED": 150, "tuning.TEST": 50},
    ),
    "benchmarks/variance.py": Small(
        "--out {out} --images {out} --fashion {data}/fashion-mnist --cache {cache}",
        {"variance.SYNTHETIC": 200, "variance.RANKS": (8,), "variance.COMPARED": 10, "variance.TIMED": 32}
        | {"variance.WORDS": 20},
        ("variance.json", "variance.png"),
    ),
}


def scripts() -> list[str]:
    """Every file of the two folders that can be run."""
    found = [path for folder in FOLDERS for path in sorted((ROOT / folder).glob("*.py"))]
    return [f"{path.parent.name}/{path.name}" for path in found if '__name__ == "__main__"' in path.read_text()]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    write_all(folder)
    return folder


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def folders(monkeypatch: pytest.MonkeyPatch, data: Path) -> None:
    """Scripts find each other, and the made-up data; variables that they set are set back."""
    for folder in FOLDERS:
        monkeypatch.syspath_prepend(str(ROOT / folder))
    monkeypatch.setenv("SACCADE_DATA", str(data))
    for name in ("SACCADE", "OMP", "OPENBLAS", "MKL"):
        monkeypatch.setenv(f"{name}_NUM_THREADS", os.environ.get(f"{name}_NUM_THREADS", "2"))


def test_every_script_has_a_smallest_size() -> None:
    assert sorted(scripts()) == sorted(SMALLEST)


@pytest.mark.usefixtures("folders")
@pytest.mark.parametrize("script", sorted(SMALLEST))
def test_script_runs(script: str, data: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name, small = Path(script).stem, SMALLEST[script]
    module = importlib.import_module(name)
    for constant, value in small.constants.items():
        owner, _, attribute = constant.partition(".")
        assert hasattr(importlib.import_module(owner), attribute), constant
        monkeypatch.setattr(importlib.import_module(owner), attribute, value)
    words = small.arguments.format(data=data, cache=cache, out=tmp_path, src=ROOT / "src")
    monkeypatch.setattr(sys, "argv", [script, *shlex.split(words)])
    before = modified(script, small)
    module.main()
    for file in expected(script, small):
        assert (tmp_path / file).stat().st_size > 0, file
    assert modified(script, small) == before
    for record in tmp_path.rglob("*.json"):
        json.loads(record.read_text())


def expected(script: str, small: Small) -> tuple[str, ...]:
    folder, name = Path(script).parts[0], Path(script).stem
    if small.makes is not None:
        return small.makes
    return (f"results/{name}.json", f"figures/{name}.png") if folder == "experiments" else (f"{name}.json",)


def modified(script: str, small: Small) -> dict[Path, int]:
    """When the files that the repository keeps of this script were written: no test may touch them."""
    places = [ROOT / place / Path(file).name for place in (".", *KEPT) for file in expected(script, small)]
    return {path: path.stat().st_mtime_ns for path in places if path.is_file()}


@pytest.mark.usefixtures("folders")
def test_every_peer_runs(data: Path) -> None:
    """In this process: `test_script_runs` has one peer in a process of its own."""
    peers = importlib.import_module("peers")
    for peer in peers.PEERS:
        if peer.startswith("GPyTorch") and importlib.util.find_spec("gpytorch") is None:
            continue  # it takes part where it is installed
        row = peers.child(peer, "digits", 120, data)
        assert row["accuracy"] > 0.5, (peer, row)


@pytest.mark.usefixtures("folders")
def test_first_calls_of_the_start_up_run() -> None:
    """`test_script_runs` replaces this text: compiling everything anew takes ten seconds."""
    exec(importlib.import_module("start_up").FIRST_CALL, {})
