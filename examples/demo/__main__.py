"""`python -m examples.demo [--out FOLDER]`."""

import argparse
from pathlib import Path

from examples.demo.run import run_demo

parser = argparse.ArgumentParser(prog="python -m examples.demo", description="A first look: train, predict and draw.")
parser.add_argument("--out", type=Path, default=Path("demo"), help="Folder for what it draws. Default: demo.")
run_demo(parser.parse_args().out)
