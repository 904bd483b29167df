"""How long a search thinks between looks.

    OPENBLAS_NUM_THREADS=1 python benchmarks/searching.py

`ask(10)` after so many looks at random boxes (the belief is made anew each time), `tell` of ten more with the noise
learned, and the posterior map of 200 × 200 places after an ask: median seconds. Goals: ask of 10 with 500 looks 0.05 s;
a map from 200 looks 0.1 s. Writes benchmarks/results/searching.json.
"""

from typing import Any

import measure
import numpy as np
from harness import arguments

from saccade.localize import BoxPrior, Localizer, iou

LOOKS, SIDE = (0, 50, 200, 500), 200
OBJECT = np.array([810.0, 620.0, 1000.0, 790.0])


def searched(looks: int) -> Localizer:
    """A search that has seen as many random boxes, half of them around the object."""
    rng = np.random.default_rng(0)
    far = BoxPrior.unknown((2000, 1500)).sample(looks - looks // 2, rng)
    boxes = np.vstack([far, OBJECT + rng.normal(0, 20, (looks // 2, 4))])
    search = Localizer((2000, 1500), noise=0.01, random_state=0)
    search.tell(boxes, iou(boxes, OBJECT) + rng.normal(0, 0.1, looks))
    return search


def times(looks: int, repeats: int) -> dict[str, Any]:
    state = searched(looks).to_state()
    learning = Localizer.from_state(state | {"options": state["options"] | {"noise": None}})
    asked = learning.ask(10)
    scores = iou(asked, OBJECT)
    ready = Localizer.from_state(state)
    ready.ask(10)
    row = {
        "looks": looks,
        "ask, s": measure.seconds(lambda: Localizer.from_state(state).ask(10), repeats),
        "map, s": measure.seconds(lambda: ready.map(SIDE, SIDE), repeats),
    }

    def tell() -> None:
        search = Localizer.from_state(learning.to_state())
        search.tell(asked, scores)

    return row | {"tell, s": measure.seconds(tell, repeats)}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--repeats", type=int, default=9)
    options = parser.parse_args()
    rows = []
    for looks in LOOKS:
        rows.append(times(looks, options.repeats))
        print(rows[-1], flush=True)
    measure.write_json(options.out / "searching.json", {"place": "2000 × 1500", "map": [SIDE, SIDE], "rows": rows})


if __name__ == "__main__":
    main()
