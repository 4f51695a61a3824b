"""What programs ask of the allocator, at their start.

Training: what a step frees is kept for the next. glibc hands large blocks back to the system as soon as they are free,
and the next step faults every page of them in again. What that costs grows with the activations.

Generating: weights and memories lie in large pages. Reading them is nearly all there is to do for a byte, and where
they do not fit the cache, looking up small pages takes a fifth of it. Training gains nothing by large pages and takes
half as much memory again.
"""

from __future__ import annotations

import contextlib
import ctypes
import os

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
"""mallopt's numbers for them, in malloc.h."""
KEPT = 1 << 30
LARGEST_HEAP_BLOCK = 32 << 20
"""The most that glibc takes for the second."""


def keep_freed_memory() -> None:
    """For a program at its start, not for a library; what the user asked of malloc stays, other systems too."""
    if any(name in os.environ for name in ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")):
        return
    with contextlib.suppress(OSError, AttributeError, TypeError):  # no glibc: nothing to set
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(MMAP_THRESHOLD, LARGEST_HEAP_BLOCK)
        mallopt(TRIM_THRESHOLD, KEPT)


def use_large_pages() -> None:
    """For a program that reads byte by byte, before it loads a model; what the user asked of torch stays."""
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")
