"""Choose the defaults of the classic descriptors on the training pictures of 15-Scenes alone.

    python experiments/choose_descriptors.py [--words 1000]

Needs the pictures in SACCADE_DATA; the test folder is never opened. The training pictures are cut in two halves, each
with half of every class. Vocabularies, noise and GP are learned on one half and judged on the other, and the other way
round. Beginning with the first value of every line of CHOICES, one parameter after another is set to the value with the
best mean rate of the chains it matters to, if that is better than the first value's by more than MARGIN. ALSO has
values that are measured for the record. No picture of Caltech-101 takes part: its figures owe nothing to the choice.

MARGIN and ALSO were decided after the trials of `scales` had been seen. The best mean alone would have taken three
patch sizes, (12, 24, 48); docs/decisions/012-choosing-on-training-pictures.md has the figures and the reason.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from common import Array, all_pictures, arguments, class_rate, gp_answers, kernel_matrices, learned_noise, write

CHAINS = ("spatial pyramid", "pyramid match")
SAMPLE = 60_000  # descriptors that a vocabulary is learned from: a third of the usual, for many vocabularies
MARGIN = 0.005  # half a point: half a standard error of a rate of 75 % on 1,500 pictures
CHOICES: dict[str, tuple[tuple[Any, ...], tuple[str, ...]]] = {
    "root": ((False, True), CHAINS),
    "scales": (((12, 24), (16,), (16, 32)), CHAINS),
    "contrast": ((0.5, 0.0), CHAINS),
    "blur": ((0.5, 1.6), CHAINS),
    "depth": ((5, 4), ("pyramid match",)),
    "fall": ((0.5, 0.7), ("pyramid match",)),
}
ALSO = {"scales": ((12, 24, 48),)}  # the best mean of its line, left out afterwards: it takes a third more time


def halves(y: Array) -> tuple[Array, Array]:
    """Picture numbers of two halves, each with half of every class."""
    rng = np.random.default_rng(0)
    parts = [np.array_split(rng.permutation(np.flatnonzero(y == label)), 2) for label in np.unique(y)]
    return np.concatenate([a for a, _ in parts]), np.concatenate([b for _, b in parts])


@contextmanager
def constants(blur: float, fall: float) -> Iterator[None]:
    """What is no parameter of a class: the blur that SIFT expects, and how much coarse matches count."""
    from saccade.features import bins, descriptors

    before = descriptors.NO_BLUR, bins.FALL
    descriptors.NO_BLUR, bins.FALL = blur, fall
    try:
        yield
    finally:
        descriptors.NO_BLUR, bins.FALL = before


def described(pictures: Any, setting: dict[str, Any]) -> Any:
    """The descriptors of all pictures, in memory."""
    from saccade.features import DenseSIFT
    from saccade.features.lazy import Given, stream

    sift = DenseSIFT(scales=setting["scales"], contrast=setting["contrast"], root=setting["root"])
    return Given(list(stream(lambda i: sift.make(pictures[i]), range(len(pictures)), None)))


def vectors(items: Any, train: Array, test: Array, chains: tuple[str, ...], depth: int, words: int) -> Any:
    """For each chain the vectors of both halves, with what one half teaches."""
    from saccade.features import BagOfWords, DescriptorPCA, PyramidHistogram, SpatialPyramid

    parts = items[train], items[test]
    if "spatial pyramid" in chains:
        pyramid = SpatialPyramid(BagOfWords(words, "soft", sample=SAMPLE)).fit(parts[0])
        yield "spatial pyramid", *(pyramid.transform(part) for part in parts)
    low = DescriptorPCA(10, positions=True, sample=SAMPLE).fit(parts[0])
    match = PyramidHistogram(depth=depth, sample=SAMPLE).fit(low.transform(parts[0]))
    yield "pyramid match", *(match.transform(low.transform(part)) for part in parts)


def rates(pictures: Any, y: Array, setting: dict[str, Any], chains: tuple[str, ...], words: int) -> dict[str, float]:
    """The rate of each chain, the mean of both directions."""
    found: dict[str, list[float]] = {name: [] for name in chains}
    first, second = halves(y)
    with constants(setting["blur"], setting["fall"]):
        items = described(pictures, setting)
        for train, test in ((first, second), (second, first)):
            for name, X, X_test in vectors(items, train, test, chains, setting["depth"], words):
                K, K_test = kernel_matrices(X, X_test)
                answer = gp_answers(K, K_test, y[train], learned_noise(K, y[train]))
                found[name].append(class_rate(y[test], answer))
    return {name: float(np.mean(values)) for name, values in found.items()}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--words", type=int, default=1000)
    parser.add_argument("--add", action="store_true", help="keep the trials of an earlier run that was cut off")
    options = parser.parse_args()
    from saccade.datasets.on_disk import scenes15

    paths, y = scenes15("train")
    pictures = all_pictures(paths, options.cache)
    setting = {name: values[0] for name, (values, _) in CHOICES.items()}
    data = f"15-Scenes, {len(y):,} training pictures in two halves; no test picture was read"
    record: dict[str, Any] = {"data": data, "words": options.words, "sample": SAMPLE, "margin": MARGIN}
    record["trials"] = earlier(options)
    for name, (values, chains) in CHOICES.items():
        means = []
        for value in (*values, *ALSO.get(name, ())):
            tried = {**setting, name: value}
            known = next((t for t in record["trials"] if as_text(t["setting"]) == as_text(tried)), None)
            if known is None or not set(chains) <= set(known["rates"]):
                known = {"setting": tried, "rates": rates(pictures, y, tried, chains, options.words)}
                record["trials"].append(known)
            means.append(float(np.mean([known["rates"][chain] for chain in chains])))
            print(name, value, {k: round(v, 4) for k, v in known["rates"].items()}, round(means[-1], 4), flush=True)
            write(options.out, "choose_descriptors", record, quiet=True)
        if max(means[: len(values)]) > means[0] + MARGIN:
            setting[name] = values[int(np.argmax(means[: len(values)]))]
    write(options.out, "choose_descriptors", {**record, "chosen": setting})


def as_text(setting: dict[str, Any]) -> str:
    """The same for a setting and for what JSON made of it."""
    return json.dumps(setting)


def earlier(options: Any) -> list[dict[str, Any]]:
    path = options.out / "results" / "choose_descriptors.json"
    if not options.add or not path.is_file():
        return []
    known = json.loads(path.read_text())
    return list(known["trials"]) if (known["words"], known["sample"]) == (options.words, SAMPLE) else []


if __name__ == "__main__":
    main()
