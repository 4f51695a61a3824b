"""Where and in which precision a model runs, chosen once and said aloud."""

from __future__ import annotations

import contextlib
import datetime
import os
import platform
import sys
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from headcount.counted import counted
from headcount.errors import RequestError
from headcount.layers.products import by_onednn


@dataclass(frozen=True)
class Device:
    """float32 everywhere; matrix products in bfloat16 on GPUs that have it."""

    name: str
    bfloat16: bool

    def autocast(self) -> AbstractContextManager[Any]:
        """Norms, softmax and loss stay in float32 inside."""
        kind = torch.device(self.name).type
        return torch.autocast(kind, dtype=torch.bfloat16) if self.bfloat16 else contextlib.nullcontext()

    def own_generators(self) -> AbstractContextManager[Any]:
        """Inside, seeds can be set freely: a caller's own generators are as they were afterwards."""
        devices = [torch.device(self.name).index or 0] if self.name.startswith("cuda") else []
        return torch.random.fork_rng(devices)

    def __str__(self) -> str:
        precision = "bfloat16 products, float32 elsewhere" if self.bfloat16 else "float32"
        threads = f", {counted(torch.get_num_threads(), 'thread')}" if self.name == "cpu" else ""
        return f"{self.name}, {precision}{threads}"

    def fingerprint(self) -> dict[str, Any]:
        """What has to be the same for a run to go on to the bit."""
        return {
            "torch": torch.__version__,
            "numpy": np.__version__,
            "device": torch.cuda.get_device_name(self.name) if self.name.startswith("cuda") else self.name,
            "cpu_capability": torch.backends.cpu.get_cpu_capability(),
            "threads": torch.get_num_threads(),
            "bfloat16": self.bfloat16,
            "products": "oneDNN" if by_onednn() else "MKL",
        }


def machine() -> dict[str, str]:
    """What a reader of a report wants to know of the computer: none of it decides about bits."""
    found = {"system": f"{platform.system()} {platform.machine()}", "processor": _processor()}
    found["cores"] = str(os.cpu_count())
    if hasattr(os, "sysconf"):  # Windows does not tell
        found["memory"] = f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.0f} GiB"
    return {**found, "date": datetime.date.today().isoformat()}


def _processor() -> str:
    with contextlib.suppress(OSError, StopIteration):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line for line in lines if line.startswith("model name")).partition(":")[2].strip()
    return platform.processor() or "unknown"


def choose(name: str | None = None) -> Device:
    """The device by name, or the best there is."""
    if name is None:
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        kind = torch.device(name).type
        torch.empty(1, device=name).item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise RequestError(f"--device {name}: not to be had here ({str(error).splitlines()[0][:100]})") from None
    if kind == "cpu":
        name = "cpu"
    bfloat16 = name.startswith("cuda") and torch.cuda.is_bf16_supported()
    return Device(name, bfloat16)


def memory_in_use() -> int:
    """Resident bytes of this process; its peak, or 0, where the system does not tell."""
    with contextlib.suppress(OSError):
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
    return peak_memory()


def peak_memory() -> int:
    """The most bytes that were resident; 0 where the system does not tell."""
    with contextlib.suppress(OSError, StopIteration):  # what `resource` tells on Linux counts the parent's too
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) * 1024
    with contextlib.suppress(ImportError):
        import resource  # not on Windows

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return 0
