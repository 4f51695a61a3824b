"""Products stay float32 products, and the setting does not leak."""

import torch

from headcount.layers.products import by_onednn, fast_products


def test_products_are_as_exact_inside():
    torch.manual_seed(0)
    a, b = torch.randn(200, 300), torch.randn(300, 400)
    exact = a.double() @ b.double()
    with fast_products():
        inside = a @ b
    outside = a @ b
    assert (inside - exact).abs().max() < 4 * (outside - exact).abs().max()


def test_the_setting_is_as_it_was_afterwards():
    before = torch.backends.mkldnn.matmul.fp32_precision
    try:
        with fast_products():
            assert (torch.backends.mkldnn.matmul.fp32_precision != before) == by_onednn()
            raise KeyError
    except KeyError:
        assert torch.backends.mkldnn.matmul.fp32_precision == before


def test_a_processor_of_intels_or_without_avx512_is_left_alone(monkeypatch):
    for able in ({"avx512_f": True, "cpu_name": "Intel Xeon"}, {"avx512_f": False, "cpu_name": "AMD EPYC"}, {}):
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda able=able: able)
        assert not by_onednn.__wrapped__()


def test_a_library_that_rounds_is_not_taken(monkeypatch):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_f": True, "cpu_name": "AMD EPYC"})
    monkeypatch.setattr(torch, "full", lambda shape, value: torch.ones(shape) * value * (1 + 2**-9))
    assert not by_onednn.__wrapped__()
