"""What the benchmarks share: where their results go."""

import argparse
from pathlib import Path

RESULTS = Path(__file__).resolve().parent / "results"


def arguments(doc: str | None) -> argparse.ArgumentParser:
    """--out, as every benchmark has it."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the results")
    return parser
