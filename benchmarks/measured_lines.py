"""Lines of docs/measured.md about learning, noticing, asking, finding and pictures, from the committed results."""

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def results(name: str, folder: Path = HERE) -> Any:
    return json.loads((folder / "results" / f"{name}.json").read_text())


def find(rows: list[dict[str, Any]], **wanted: Any) -> dict[str, Any]:
    return next(r for r in rows if all(r[k] == v for k, v in wanted.items()))


def picture_lines() -> list[tuple[str, str]]:
    speed = results("pictures")
    scenes, caltech = (results(name, HERE.parent / "experiments") for name in ("scenes15", "caltech101_fig3"))
    at_15 = caltech["sizes"].index(15)
    shown = ("spatial pyramid", "deep")
    there = "; ".join(pair(scenes["methods"][name]["gp"], scenes["methods"][name]["svm"]) for name in shown)
    here = "; ".join(pair(caltech["mean"][name]["gp"][at_15], caltech["mean"][name]["svm"][at_15]) for name in shown)
    one, two = speed["1 threads"], speed["2 threads"]
    words, network = one["dense SIFT at one scale, 1,000 words"], two["EfficientNet-Lite0"]
    return [
        (
            "recognise 15-Scenes: mean of the classes' rates, GP and SVM on the same kernel, noise and C chosen on "
            "training pictures; classic features; deep ones",
            there,
        ),
        (f"the same for Caltech-101 from 15 pictures of each class, number of splits: {caltech['splits']}", here),
        (
            "pictures of 300 × 200 a second: dense SIFT and 1,000 words on one core; EfficientNet-Lite0 on two; "
            "from the cache",
            f"{words['pictures a second']:.0f}; {network['pictures a second']:.0f}; "
            f"{words['from the cache']:,.0f} and more",
        ),
    ]


def pair(gp: float, svm: float) -> str:
    return f"{100 * gp:.1f}, {100 * svm:.1f} %"


def learning_lines() -> list[tuple[str, str]]:
    tuning, variance = results("tuning"), results("variance")
    search = find(tuning["search"], objective="evidence")
    ratios = [row["ratio"] for row in tuning["derivatives"]]
    rows = {name: find(data["rows"], rank=128)["ours"] for name, data in variance["data"].items()}
    real = [row for name, row in rows.items() if "synthetic" not in name]
    flat = next(row for name, row in rows.items() if "synthetic" in name)
    times = sorted(row["µs for 200 non-zeros"] for row in rows.values())
    ranks = sorted(row["rank correlation"] for row in real)
    return [
        (
            "learn exponent, noise and scale on 50,050 × 1,000 by evidence (the paper: 2,815 s)",
            f"{search['s']:.0f} s; accuracy {search['accuracy untuned']:.3f} → {search['accuracy tuned']:.3f}, and "
            f"{search['accuracy of BernoulliNB']:.3f} for BernoulliNB: these data measure time alone",
        ),
        (
            "evidence with the derivatives of 1,000 weights, against one fit, n = 10,000 and 50,050",
            f"{ratios[0]:.1f} and {ratios[1]:.1f} ×",
        ),
        (
            "variance of an example (200 non-zeros) from 128 directions, an upper bound; rank correlation with exact "
            "on real features, on synthetic ones",
            f"{times[0]:.1f} to {times[-1]:.1f} µs; {ranks[0]:.3f} to {ranks[-1]:.3f}, {flat['rank correlation']:.2f}",
        ),
    ]


def notice_lines() -> list[tuple[str, str]]:
    speed, block = results("novelty"), results("kernel_block")
    table, scale, known = (
        results(name, HERE.parent / "experiments") for name in ("one_class_table2", "novelty_scale", "known_classes")
    )
    at_100, last = find(speed["testing"], n=100), speed["testing"][-1]
    noticed = (
        "{median fit, s:.1f} s, {median score, µs an example:.0f} µs, {mean AUC, held-out classes:.2f}".format_map(
            scale["detectors"][f"{name}; pixels"]
        )
        for name in ("GP-HIK, probability", "IsolationForest", "FAISS neighbours")
    )
    tables = speed["tables"]
    classes = list(known["auc"].values())
    joined, single = (
        [sum(row["regression"][name]) / known["splits"] for row in classes] for name in ("novelty", "confidence")
    )
    rates = [row["G minima/s"]["saccade HIK()(A, B)"] for row in block["blocks"].values()]
    return [
        (
            f"one class of Caltech-101 against the background, 15 pictures, {table['splits']} splits, mean AUC of "
            "Reg-P, Reg-V and the best SVDD: PHOG; Opponent-SIFT words "
            f"(the paper: {'; '.join(one_class_line(table['paper'][name]) for name in ('phog', 'colour'))})",
            "; ".join(one_class_line(table["mean"][name]) for name in ("phog", "colour")),
        ),
        (
            "notice a class of Fashion-MNIST that 54,000 pictures (pixels) did not have, one thread: fit, score, "
            "mean AUC of ten classes, each held out in turn; IsolationForest; the fifth neighbour by FAISS",
            "; ".join(noticed),
        ),
        (
            "score the novelty of an example after 60,000, 2 threads: " + "; ".join(t["data"] for t in tables),
            "; ".join(f"{t['score variance, µs']:.1f} µs" for t in tables),
        ),
        (
            f"the diagonal approximation (FA) against the exact variance, n = 100 and {last['n']} (paper: 9.4 ×)",
            f"{at_100['exact / FA']:.0f} and {last['exact / FA']:.0f} ×",
        ),
        (
            "unknown classes told by `GPClassifier.novelty`, and by confidence alone: AUC on "
            + ", ".join(known["auc"]),
            "; ".join(f"{a:.2f}, {b:.2f}" for a, b in zip(joined, single, strict=True)),
        ),
        (
            "a block of the intersection kernel, one core: " + "; ".join(block["blocks"]),
            "; ".join(f"{rate:.0f}" for rate in rates) + " G minima/s",
        ),
    ]


TARGETED = ("digits", "breast-cancer", "15-scenes")


def worst_miss(stop: dict[str, Any]) -> float:
    """Largest share of campaigns whose interval missed the truth, over collections and targets."""
    return max(
        1.0 - found["covered or not stopped"]
        for collection in ("digits", "breast cancer", "made up", "15-Scenes, deep")
        for name, found in stop[collection]["one in ten"].items()
        if name.startswith("target")
    )


def shown_at(rows: list[dict[str, Any]], target: float) -> str:
    """Questions and share of the campaigns that stop, with a target and without."""
    ways = (find(rows, way=way, target=target) for way in ("target", "one in ten"))
    return ", ".join(f"{way['asked']:.0f} ({100 * way['stopped']:.0f} %)" for way in ways)


def whole(labels: float | None) -> str:
    return "–" if labels is None else f"{labels:.0f}"


def ask_lines() -> list[tuple[str, str]]:
    speed, wrong = results("asking"), results("label_issues")
    budget, four, stop, target = (
        results(name, HERE.parent / "experiments")
        for name in ("ask_more_sets", "ask_kapoor_fig6", "ask_stop", "ask_target")
    )
    cycle, large, batch = speed["cycles"], speed["large pool"], speed["joint batch"]
    needed = [task["labels"] for task in budget["tasks"].values()]
    deep = {name: runs["after all labels"] for name, runs in four["features"]["pyramid"].items()}
    missed = worst_miss(stop)
    most = cycle["GB of the pool"] + max(
        cycle[f"GB beyond the pool, {when}"] for when in ("at the start", "in the cycles")
    )
    ours, theirs = (find(wrong["rows"], n=60_000, method=name) for name in ("saccade", "cleanlab"))
    return [
        (
            f"one answer and the next question: {cycle['labels']:,} labels, a pool of {cycle['rows']:,} × "
            f"{cycle['features']:,}, {cycle['classes']} classes: median, 95th of 100",
            f"{cycle['median, ms']:.0f}, {cycle['p95, ms']:.0f} ms; {most:.1f} GB with the pool",
        ),
        (
            f"one question about {large['rows']:,} examples: uncertainty; Σ-optimality; auto; "
            f"{batch['batch']} jointly out of {batch['rows']:,}",
            "; ".join(f"{large[f'{name}, s']:.2f}" for name in ("uncertainty", "sigma", "auto"))
            + f"; {batch['joint, s']:.2f} s",
        ),
        (
            f"labels to 95 % of the accuracy with all of them, batches of {budget['batch']}, {budget['runs']} runs; "
            f"auto, margin, random: {'; '.join(budget['tasks'])}",
            "; ".join(", ".join(whole(one[name]["0.95"]) for name in ("auto", "margin", "random")) for one in needed),
        ),
        (
            f"four classes of Caltech-101, {four['labels']} labels, pyramid match: asking, random GP, random SVM (the "
            "paper: 98.5, 95.6, 95.2 %)",
            ", ".join(f"{rate:.1f}" for rate in deep.values()) + " %",
        ),
        (
            f"stop when an accuracy is shown: campaigns of {stop['campaigns']} whose 95 % interval missed the truth "
            "then, worst of four collections and all targets",
            f"{100 * missed:.1f} %",
        ),
        (
            "show an accuracy of 0.8: median questions of the campaigns that stop within 800, and their share, with "
            f"target=0.8 and with one audit in ten: {'; '.join(TARGETED)}; made-up campaigns of 1,000 that stopped "
            "below the target, worst of 16 settings",
            "; ".join(shown_at(target[name]["rows"], 0.8) for name in TARGETED)
            + f"; {100 * max(row['false'] for row in target['made-up curves']):.1f} %",
        ),
        (
            "suspects among 60,000 labels of Fashion-MNIST, a tenth wrong: seconds after the fit, average precision; "
            "cleanlab with five logistic regressions, CPU seconds and average precision",
            f"{ours['after fit']['s']:.2f} s, {ours['average precision']:.2f}; "
            f"{theirs['fit']['CPU s'] + theirs['after fit']['CPU s']:.0f} s, {theirs['average precision']:.2f}",
        ),
    ]


def one_class_line(means: dict[str, float]) -> str:
    best = max(auc for name, auc in means.items() if "SVDD" in name)
    return ", ".join(f"{auc:.3f}" for auc in (means["Reg-P"], means["Reg-V"], best))


def find_lines() -> list[tuple[str, str]]:
    boxes, every = (results(name, HERE.parent / "experiments") for name in ("find_boxes", "find_all_rivals"))
    thinking, other, huge = (results(name) for name in ("searching", "finding", "huge_pictures"))
    settings = [(known, noise) for known in (True, False) for noise in (0.0, 0.03)]
    ours = [find(boxes["rows"], way="ours", size_known=a, noise=b, prior=True) for a, b in settings]
    early, late = (find(thinking["rows"], looks=looks) for looks in (50, 500))
    shown = find(thinking["rows"], looks=200)["map, s"]
    window, kinds = [row["share"] for row in other["best window"]], ("clustered", "scattered", "common")
    return [
        (
            f"look for a dog of {100 * boxes['settings']['median_area']:.1f} % of the picture's area (median) in "
            f"{ours[0]['searches']} photographs, prior of the others, the slides' oracle: median looks to an overlap "
            "of a half, and share found in 150; size known, the same with noise 0.03; size not known, with noise "
            "(published for learned agents, on other pictures: 11 to 25 looks)",
            "; ".join(f"{row['looks']:.0f}, {row['solved']:.1%}" for row in ours),
        ),
        (
            "the next ten boxes and taking their scores, noise learned, after 50 looks and after 500: with more looks "
            "fewer hypotheses are left; a map of 200 × 200 places after 200",
            "; ".join(f"{1000 * row['ask, s']:.0f} + {1000 * row['tell, s']:.0f} ms" for row in (early, late))
            + f"; {1000 * shown:.0f} ms",
        ),
        (
            "all of them: hits found in a tenth of the looks, search and outliers of the same overview: white cells; "
            "raccoons in texture; clustered, scattered and common photographs in textures; share of "
            f"{sum(every[kind]['pictures'] for kind in kinds)} of the last three in which the interval for those left "
            "holds, least of three; a 40,000 × 40,000 TIFF searched in",
            "; ".join(
                f"{every[name]['found']['search'][-1]:.1%}, {every[name]['found']['outliers first'][-1]:.1%}"
                for name in ("white cells", "raccoons in texture", *kinds)
            )
            + f"; {min(min(every[kind]['left']['interval']) for kind in kinds):.1%}; "
            f"{huge['searches'][0]['peak, MB']:.0f} MB",
        ),
        (
            "the exact share of every feature in 10,000 decisions, two and ten classes; the provably best window, "
            "bounds as a share of a scan's windows, three photographs",
            f"{find(other['explain'], classes=2, levels=None)['explain, s']:.2f}, "
            f"{find(other['explain'], classes=10, levels=None)['explain, s']:.2f} s; "
            f"{min(window):.2%} to {max(window):.2%}",
        ),
    ]
