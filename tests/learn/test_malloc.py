import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

CHURN = """
import resource
import numpy as np
from headcount.learn.malloc import keep_freed_memory
if {kept}:
    keep_freed_memory()
def step():
    return [np.ones(2_500_000) for _ in range(6)]
for _ in range(3):
    step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    step()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def number(code: str, **environment: str) -> int:
    """What another process prints; commands that other tests ran in this one may have asked for large pages."""
    inherited = {name: value for name, value in os.environ.items() if name != "THP_MEM_ALLOC_ENABLE"}
    done = subprocess.run(
        [sys.executable, "-c", code], env={**inherited, **environment}, capture_output=True, text=True, check=True
    )
    return int(done.stdout)


def faults(kept: bool, **environment: str) -> int:
    return number(CHURN.format(kept=kept), **environment)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has these thresholds")
def test_what_a_step_frees_is_kept_for_the_next() -> None:
    assert faults(kept=True) < faults(kept=False) / 20


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has these thresholds")
def test_what_the_user_asked_of_malloc_stays() -> None:
    asked = {"MALLOC_TRIM_THRESHOLD_": "131072", "MALLOC_MMAP_THRESHOLD_": "131072"}
    assert faults(kept=True, **asked) > faults(kept=False, **asked) / 2


LARGE = """
from pathlib import Path
from headcount.learn.malloc import use_large_pages
if {asked}:
    use_large_pages()
import torch
weights = torch.ones(16 << 20)
rows = dict(line.split(":", 1) for line in Path("/proc/self/smaps_rollup").read_text().splitlines()[1:])
print(int(rows["AnonHugePages"].split()[0]))
"""


def large_pages(asked: bool, **environment: str) -> int:
    """Kilobytes in large pages of a process that has a tensor of 64 MB."""
    return number(LARGE.format(asked=asked), **environment)


SETTING = Path("/sys/kernel/mm/transparent_hugepage/enabled")


@pytest.mark.skipif(not SETTING.exists() or "[madvise]" not in SETTING.read_text(), reason="the system decides itself")
def test_weights_lie_in_large_pages_if_asked_for_and_the_user_does_not_mind() -> None:
    assert large_pages(asked=True) >= 32 << 10 > large_pages(asked=False)
    assert large_pages(asked=True, THP_MEM_ALLOC_ENABLE="0") < 32 << 10
