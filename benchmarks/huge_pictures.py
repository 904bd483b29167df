"""A picture of 40,000 × 40,000 pixels searched in little memory.

    OPENBLAS_NUM_THREADS=1 python benchmarks/huge_pictures.py [--side 40000]

A tiled TIFF file (512 × 512, zlib) is made in a temporary folder, once with a coarse copy and once without. A process
of its own opens it, reads the overview, looks at a tenth of the tiles of 1,024 pixels, and says how many hits are left;
its peak of resident memory is that of the operating system. Goal: 500 MB. Writes benchmarks/results/huge_pictures.json.
"""

import json
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import measure
import numpy as np
from harness import arguments

from saccade._core.arrays import Array

SEGMENT, TILE, COARSE = 512, 1024, 16
GOAL_MB = 500.0
SEARCH = """
import json, resource, sys, time
import numpy as np
from saccade.localize import TileSearch, open_picture

def peak():  # MB; Linux counts in KB
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

path, tile = sys.argv[1], int(sys.argv[2])
before, begin = peak(), time.perf_counter()
with open_picture(path) as source:
    budget = max(20, source.shape[0] * source.shape[1] // tile**2 // 10)
    search = TileSearch(source, tile, features="overview", budget=budget, random_state=0)
    overview = time.perf_counter() - begin
    while search.look(lambda crops: [float((crop[::8, ::8, 0] > 200).any()) for crop in crops], source, 10):
        pass
    left = search.left()
print(json.dumps({
    "tiles": len(search.tiles.boxes), "looks": int(np.isfinite(search.hits).sum()),
    "found": int(np.nansum(search.hits)),
    "expected left": left.expected, "problems": len(search.problems), "overview, s": overview,
    "all, s": time.perf_counter() - begin, "before, MB": before, "peak, MB": peak(),
}))
"""


def segments() -> tuple[Array, Array]:
    """Two pieces of the picture: ground, and ground with a red square."""
    y, x = np.mgrid[:SEGMENT, :SEGMENT]
    grey = (96 + 24 * np.sin(x / 17.0) + 24 * np.cos(y / 23.0)).astype(np.uint8)
    plain = np.repeat(grey[..., None], 3, axis=2)
    red = plain.copy()
    red[150:330, 200:400] = (230, 30, 30)
    return plain, red


def write_picture(path: Path, side: int, coarse: bool) -> int:
    """The file; how many red squares it has: those of the pieces within a circle."""
    import tifffile

    pieces, across = segments(), -(-side // SEGMENT)
    place = np.indices((across, across)).reshape(2, -1).T
    red = np.square(place / across - (0.3, 0.6)).sum(axis=1) < 0.06**2
    options: dict[str, Any] = {"dtype": np.uint8, "photometric": "rgb", "compression": "zlib"}

    def pressed(pictures: list[Array]) -> Iterator[bytes]:
        ready = [zlib.compress(picture.tobytes(), 1) for picture in pictures]
        return (ready[int(hit)] for hit in red)

    with tifffile.TiffWriter(path, bigtiff=True) as file:
        file.write(pressed(list(pieces)), shape=(side, side, 3), tile=(SEGMENT,) * 2, subifds=int(coarse), **options)
        if coarse:
            step = SEGMENT // COARSE
            small = [p.reshape(step, COARSE, step, COARSE, 3).mean(axis=(1, 3)).astype(np.uint8) for p in pieces]
            half = -(-side // COARSE)
            file.write(pressed(small), shape=(half, half, 3), tile=(step, step), subfiletype=1, **options)
    return int(red.sum())


def searched(side: int, coarse: bool) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "huge.tif"
        squares = write_picture(path, side, coarse)
        found = {"side": side, "coarse copy": coarse, "file, MB": path.stat().st_size / 2**20, "squares": squares}
        done = subprocess.run(
            [sys.executable, "-c", SEARCH, str(path), str(TILE)], capture_output=True, text=True, check=False
        )
    if done.returncode:
        raise SystemExit(done.stderr)
    return found | json.loads(done.stdout)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--side", type=int, default=40_000)
    options = parser.parse_args()
    rows = [searched(options.side, coarse) for coarse in (True, False)]
    for row in rows:
        print(row, flush=True)
    measure.write_json(options.out / "huge_pictures.json", {"goal, MB": GOAL_MB, "searches": rows})
    assert all(row["found"] > 0 and not row["problems"] for row in rows)


if __name__ == "__main__":
    main()
