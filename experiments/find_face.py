"""The face of scikit-image's astronaut, searched from several random starts: what knowing its size and place is worth.

    python experiments/find_face.py [--starts 10]

The demo's judge (examples/demo/find.py): a Gaussian process of overlaps, learned from 100 faces of 25 × 25 pixels.
Four searches: with a prior from five boxes of portraits typed in by hand, with the size given, with both, with neither.
"""

from typing import Any

import numpy as np
from common import arguments, show_progress, write

from examples.demo.find import FACE, SIZE, expected_place, learned_judge, looks_to_half, search_astronaut
from saccade._core.progress import report
from saccade.localize import iou

LOOKS = 60


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--starts", type=int, default=10)
    options = parser.parse_args()
    record: dict[str, Any] = {"n": 1, "seeds": list(range(options.starts)), "looks": LOOKS, "face": FACE}
    with show_progress():
        judge, record["crops learned from"] = learned_judge()
        ways = {"both": (True, True), "size": (False, True), "place": (True, False), "neither": (False, False)}
        for done, (name, (place, size)) in enumerate(ways.items()):
            rows = []
            for seed in range(options.starts):
                prior = expected_place() if place else None
                found = search_astronaut(judge, prior, SIZE if size else None, seed, LOOKS)
                rows.append(
                    (looks_to_half(found), float(iou(found.found.box, np.array(FACE))), found.found.probability)
                )
                report("searching", (done + (seed + 1) / options.starts) / len(ways))
            record[name] = {
                "found": sum(row[0] is not None for row in rows),
                "looks to an overlap of 0.5": [row[0] for row in rows],
                "overlap": [round(row[1], 2) for row in rows],
                "probability": [round(row[2], 3) for row in rows],
            }
    write(options.out, "find_face", record)


if __name__ == "__main__":
    main()
