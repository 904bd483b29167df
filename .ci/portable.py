"""The numerical tests as other machines would run them: `make portable`, 10 to 20 minutes, no part of CI.

Each run has the BLAS kernels, the compiled loops, the threads or the versions of another machine. Failures of one run
do not stop the others; the end says which passed.
"""

import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parent.parent
TESTS = [f"tests/{room}" for room in ("operators", "solvers", "kernels", "inference", "scores", "estimators", "active")]
BLAS = """
import numpy, scipy.linalg, threadpoolctl, numba
blas = {(p.get("version"), p.get("architecture"), p["num_threads"]) for p in threadpoolctl.threadpool_info()}
names = [f"{p.__name__} {p.__version__}" for p in (numpy, scipy, numba)]
print(*names, "BLAS", *sorted(map(str, blas)))
"""


@dataclass(frozen=True)
class Run:
    """The tests in one environment."""

    name: str
    settings: dict[str, str] = field(default_factory=dict)
    environment: str = ".venv"
    alone: bool = False  # one process: its threads are to have the cores

    def start(self, jobs: str, arguments: list[str]) -> bool:
        python = ROOT / self.environment / "bin" / "python"
        settings = os.environ | {
            "OPENBLAS_NUM_THREADS": "1",
            # Numba tells CPUs apart in one folder, but not its own versions
            "NUMBA_CACHE_DIR": str(ROOT / self.environment / "numba"),
            **self.settings,
        }
        print(f"\n== {self.name}", flush=True)
        subprocess.run([python, "-c", BLAS], cwd=ROOT, env=settings, check=False)
        spread = [] if self.alone else ["-n", jobs, "--dist", "worksteal"]
        command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *spread, *TESTS, *arguments]
        return subprocess.run(command, cwd=ROOT, env=settings, check=False).returncode == 0


RUNS = [
    *(Run(f"OPENBLAS_CORETYPE={core}", {"OPENBLAS_CORETYPE": core}) for core in ("Haswell", "Nehalem", "Sandybridge")),
    Run("NUMBA_CPU_NAME=generic", {"NUMBA_CPU_NAME": "generic"}),
    Run("1 thread", {"SACCADE_NUM_THREADS": "1"}),
    Run("2 threads", {"SACCADE_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"}, alone=True),
    Run("floors of all dependencies", environment=".venv-floors"),
]


def main(jobs: str, *arguments: str) -> int:
    results = []
    for run in RUNS:
        begin = time.monotonic()
        passed = run.start(jobs, list(arguments))
        results.append(passed)
        print(f"{'passed' if passed else 'FAILED'}: {run.name} ({time.monotonic() - begin:.0f} s)", flush=True)
    print("\n== Summary")
    for run, passed in zip(RUNS, results, strict=True):
        print(f"{'passed' if passed else 'FAILED'}  {run.name}")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
