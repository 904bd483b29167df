"""How fast pictures become vectors, and how much memory many of them take.

    python benchmarks/pictures.py [--many 100000]

Pictures are cut from those that ship with scikit-image: 300 × 200 px, saved as JPEG. One core is one thread of ours
(n_jobs=1, one BLAS thread). The second run reads everything from the cache. `--many` small pictures (32 × 32, PNG) go
through in a process of their own, so that its peak memory is theirs.
"""

import json
import multiprocessing
import os
import tempfile
import time
from pathlib import Path
from typing import Any

from harness import arguments

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(name, "1")

COUNT = 600
WORDS = 1000


def make_pictures(folder: Path, count: int, size: tuple[int, int], ending: str) -> None:
    """Pieces of real pictures, different each."""
    import numpy as np
    from PIL import Image
    from skimage import data

    rng = np.random.default_rng(0)
    wholes = [data.astronaut(), data.coffee(), data.chelsea()]
    width, height = size
    folder.mkdir(parents=True)
    for k in range(count):
        whole = wholes[k % 3]
        y, x = rng.integers(0, np.array(whole.shape[:2]) - (height, width) + 1)
        Image.fromarray(whole[y : y + height, x : x + width]).save(folder / f"{k:06}.{ending}")


def chains(cache: Any, n_jobs: int | None) -> dict[str, Any]:
    from sklearn.pipeline import make_pipeline

    from saccade.features import BagOfWords, DeepFeatures, DenseSIFT

    shared: dict[str, Any] = {"cache": cache, "n_jobs": n_jobs}
    return {
        "dense SIFT at one scale, 1,000 words": make_pipeline(DenseSIFT(scales=(16,)), BagOfWords(WORDS, **shared)),
        "dense SIFT at two scales, 1,000 words": make_pipeline(DenseSIFT(), BagOfWords(WORDS, **shared)),
        "EfficientNet-Lite0": make_pipeline(DeepFeatures(**shared)),
    }


def rates(folder: Path, cache: Path, n_jobs: int) -> dict[str, dict[str, float]]:
    """Pictures a second of `transform`, fresh and from the cache."""
    from saccade.features import read_pictures

    found = {}
    for name, chain in chains(cache, n_jobs).items():
        chain.fit(read_pictures(folder)[::2])
        seconds = []
        for _ in range(2):
            start = time.perf_counter()
            chain.transform(read_pictures(folder, cache=cache, n_jobs=n_jobs))
            seconds.append(time.perf_counter() - start)
        found[name] = {
            "pictures a second": COUNT / seconds[0],
            "from the cache": COUNT / seconds[1],
            "times faster": seconds[0] / seconds[1],
        }
        print(n_jobs, name, found[name], flush=True)
    return found


def many_small(folder: str, queue: Any) -> None:
    """All pictures of a folder through dense SIFT and words."""
    import measure
    from sklearn.pipeline import make_pipeline

    from saccade.features import BagOfWords, DenseSIFT, read_pictures

    start = time.perf_counter()
    pictures = read_pictures(folder)
    X = make_pipeline(DenseSIFT(scales=(16,)), BagOfWords(200, sample=50_000)).fit_transform(pictures)
    queue.put(
        {
            "pictures": X.shape[0],
            "seconds": time.perf_counter() - start,
            "peak GB": measure.resident_bytes(peak=True) / 1e9,
        }
    )


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--many", type=int, default=100_000)
    options = parser.parse_args()
    from measure import write_json

    results: dict[str, Any] = {"pictures": COUNT, "size": [300, 200]}
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        make_pictures(root / "pictures", COUNT, (300, 200), "jpg")
        for n_jobs in (1, 2):
            results[f"{n_jobs} threads"] = rates(root / "pictures", root / f"cache{n_jobs}", n_jobs)
        if options.many:
            make_pictures(root / "small", options.many, (32, 32), "png")
            context = multiprocessing.get_context("spawn")
            queue = context.Queue()
            process = context.Process(target=many_small, args=(str(root / "small"), queue))
            process.start()
            results["small pictures, 32 × 32"] = queue.get(timeout=3600)
            process.join()
    write_json(options.out / "pictures.json", results)
    print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
