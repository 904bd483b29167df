"""Timing with care: warm up, take the median, say on which machine."""

from __future__ import annotations

import gc
import json
import os
import platform
import re
import time
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from saccade._core.atomic import replacing
from saccade._core.threads import thread_count

PROCESSES = Path("/proc")  # of Linux; other systems have none


def seconds(
    work: Callable[[], Any],
    repeats: int = 9,
    warm_up: bool = True,
) -> float:
    """The median time of one call."""
    if warm_up:
        work()
    gc.collect()
    gc.disable()  # as timeit does: collections would land on some repeats and not on others
    times = []
    try:
        for _ in range(repeats):
            start = time.perf_counter()
            work()
            times.append(time.perf_counter() - start)
    finally:
        gc.enable()
    return float(np.median(times))


def unit(X: Any) -> float:
    """The yardstick: seconds of one scipy.sparse CSR matrix–vector product in float64 on X, one thread."""
    X64, ones = X.astype(np.float64), np.ones(X.shape[1])
    return seconds(lambda: X64 @ ones, 15)


def resident_bytes(peak: bool = False) -> float:
    """Memory that this process holds now, or has held at most since `reset_peak`; NaN where there is no /proc."""
    with suppress(OSError):
        for line in (PROCESSES / "self" / "status").read_text().splitlines():
            if line.startswith("VmHWM:" if peak else "VmRSS:"):
                return float(line.split()[1]) * 1024
    return float("nan")


def reset_peak() -> None:
    """Forget the peak so far, where the system can (Linux)."""
    with suppress(OSError):
        (PROCESSES / "self" / "clear_refs").write_text("5")


def machine() -> dict[str, Any]:
    """CPU, threads and versions."""
    cpu = platform.processor() or platform.machine()
    info = PROCESSES / "cpuinfo"
    if info.is_file():
        names = [
            line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")
        ]
        cpu = names[0] if names else cpu
    packages = {}
    for name in ("saccade", "numpy", "scipy", "scikit-learn", "numba", "torch", "gpytorch"):
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            continue
    blas = {k: v for k, v in os.environ.items() if k.endswith("_NUM_THREADS")}
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "threads": thread_count(),
        "environment": blas,
        "python": platform.python_version(),
        "packages": packages,
    }


def machine_name() -> str:
    """CPU and cores, as a name for a file."""
    found = machine()
    return re.sub(r"[^a-z0-9]+", "_", f"{found['cpu']} {found['cores']} cores".lower()).strip("_")


def write_json(path: Path, results: dict[str, Any]) -> None:
    """Results with the machine they are from."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"machine": machine(), **results}, indent=1, default=float)
    with replacing(path) as file:
        file.write((text + "\n").encode())
