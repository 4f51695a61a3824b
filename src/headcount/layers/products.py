"""float32 matrix products by the faster of torch's two libraries.

torch multiplies float32 matrices with MKL, which keeps to AVX2 on processors that are not Intel's; oneDNN, which comes
along, takes AVX-512 wherever it is: twice the speed on a Zen 5. torch's way to ask for it is a setting for products in
bfloat16 "if the processor has them", and where it has none that oneDNN uses, the products stay in float32. That they do
is tried once, on numbers that bfloat16 cannot hold.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager

import torch

PROBE = 257.0
"""Nine bits; bfloat16 has eight."""


@contextmanager
def fast_products(rows: int = 2) -> Iterator[None]:
    """Inside, large float32 products on the CPU come from the faster library; the setting is the whole process's.

    A single row is better off with MKL.
    """
    if rows == 1 or not by_onednn():
        yield
        return
    with _onednn():
        yield


@functools.cache
def by_onednn() -> bool:
    """Whether oneDNN multiplies faster here, and as exactly."""
    able = torch.cpu.get_capabilities()
    if not able.get("avx512_f") or "Intel" in able.get("cpu_name", "Intel"):
        return False
    with _onednn():
        return bool((torch.full((64, 64), PROBE) @ torch.eye(64) == PROBE).all())


@contextmanager
def _onednn() -> Iterator[None]:
    products = torch.backends.mkldnn.matmul  # type: ignore[attr-defined]  # made on import
    before = products.fp32_precision
    products.fp32_precision = "bf16"
    try:
        yield
    finally:
        products.fp32_precision = before
