import os
import platform
import subprocess
import sys

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


def faults(kept: bool, **environment: str) -> int:
    done = subprocess.run(
        [sys.executable, "-c", CHURN.format(kept=kept)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has these thresholds")
def test_what_a_step_frees_is_kept_for_the_next() -> None:
    assert faults(kept=True) < faults(kept=False) / 20


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has these thresholds")
def test_what_the_user_asked_of_malloc_stays() -> None:
    asked = {"MALLOC_TRIM_THRESHOLD_": "131072", "MALLOC_MMAP_THRESHOLD_": "131072"}
    assert faults(kept=True, **asked) > faults(kept=False, **asked) / 2
