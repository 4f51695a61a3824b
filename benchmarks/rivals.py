"""`make bench`, second part: Transformer-XL against the published way, the character Transformer against torch.

Measured as `benchmarks.measured` says. Writes docs/results/speed_rivals.md.
"""

from __future__ import annotations

import statistics

import torch
from torch import Tensor, nn

from benchmarks.measured import Row, Step, against_twin, in_turn, peak_memory, surroundings, training, write
from benchmarks.published_xl import PublishedTransformerXL
from headcount.exchange.legacy import load_transformer_xl
from headcount.layers.products import fast_products
from headcount.learn.malloc import keep_freed_memory
from headcount.learn.optimisers import build
from headcount.models.char_transformer import CharTransformer, CharTransformerConfig
from headcount.models.transformer_xl import TransformerXL, TransformerXLConfig
from headcount.tables import AdamWTable

XL = {"width": 256, "layers": 4, "heads": 4, "inner": 1024, "window": 1024, "window_rule": "memory"}
XL_STREAMS, XL_SEGMENT = 16, 256
DEEP = {"width": 256, "layers": 12, "heads": 4, "inner": 1024, "context": 256}
DEEP_STREAMS = 8


def xl(dropout: float, recompute: str) -> Step:
    """Ours."""
    config = TransformerXLConfig(**XL, dropout=dropout, recompute=recompute)
    return training(TransformerXL(config), XL_STREAMS, XL_SEGMENT)


def xl_twin(dropout: float) -> Step:
    """The published way."""
    model = PublishedTransformerXL(TransformerXLConfig(**XL, dropout=dropout)).train()
    optimiser = build(AdamWTable(), model)
    tokens, carried = torch.randint(0, 256, (XL_SEGMENT + 1, XL_STREAMS)), {"memories": None}

    def step() -> None:
        optimiser.zero_grad(set_to_none=True)
        hidden, carried["memories"] = model(tokens[:-1], carried["memories"])
        model.loss(hidden, tokens[1:]).backward()
        optimiser.step()

    return step


@torch.inference_mode()
def agreement() -> float:
    """The largest difference of the two models' outputs over several segments."""
    torch.manual_seed(0)
    config = TransformerXLConfig(**XL)
    twin = PublishedTransformerXL(config).eval()
    keys = {"vocab_size": 256, "cutoffs": [], "d_model": 256, "d_embed": 256, "n_head": 4, "d_head": 64}
    keys |= {"d_inner": 1024, "div_val": 1, "n_layer": 4, "mem_len": 1024, "clamp_len": -1, "same_length": False}
    ours = load_transformer_xl(twin.state_dict(), keys)
    state, memories, worst = ours.start(2), None, 0.0
    for tokens in torch.randint(0, 256, (2, 1536)).split(256, dim=1):
        mine, state = ours(tokens, state)
        theirs, memories = twin(tokens.t(), memories)
        worst = max(worst, (mine - theirs.transpose(0, 1)).abs().max().item())
    return worst


class TorchLayers(nn.Module):
    """A character Transformer of `torch.nn.TransformerEncoderLayer`s: the same sizes, positions once."""

    def __init__(self, config: CharTransformerConfig) -> None:
        super().__init__()
        self.embedding = nn.Embedding(config.vocabulary, config.width)
        self.positions = nn.Parameter(0.02 * torch.randn(config.context, config.width))
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                config.width, config.heads, config.inner, dropout=0.0, batch_first=True, norm_first=config.norm == "pre"
            )
            for _ in range(config.layers)
        )
        self.classifier = nn.Linear(config.width, config.vocabulary)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens) + self.positions
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1])
        for layer in self.layers:
            x = layer(x, src_mask=mask, is_causal=True)
        logits: Tensor = self.classifier(x)
        return logits


def torch_layers(config: CharTransformerConfig) -> Step:
    """One training step of them, with the same library for products as ours."""
    model = TorchLayers(config).train()
    optimiser = build(AdamWTable(), model)
    tokens = torch.randint(0, 256, (DEEP_STREAMS, config.context + 1))

    def step() -> None:
        optimiser.zero_grad(set_to_none=True)
        with fast_products():
            logits = model(tokens[:, :-1])
            nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten()).backward()
        optimiser.step()

    return step


def xl_rows() -> list[Row]:
    """Training with a memory of 1,024: seconds and memory."""
    rows: list[Row] = []
    settings = [(dropout, recompute) for dropout in (0.1, 0.0) for recompute in ("layers", "nothing")]
    with torch.device("meta"):
        flops = 3 * TransformerXL(TransformerXLConfig(**XL)).spec(XL_SEGMENT).flops * XL_STREAMS * XL_SEGMENT
    for dropout, recompute in settings:
        name = f"Transformer-XL, training, dropout {dropout:g}, recompute = {recompute}"
        rows += against_twin(name, "≥ 2 ×", xl(dropout, recompute), xl_twin(dropout), flops, repeats=5)
    for dropout, recompute in settings:
        steps = f"xl({dropout}, {recompute!r})", f"xl_twin({dropout})"
        mine, theirs = (peak_memory("benchmarks.rivals", step) / 2**20 for step in steps)
        name = f"Transformer-XL, peak memory, dropout {dropout:g}, recompute = {recompute}"
        rows.append((name, f"{mine / theirs:.2f} ×", "≤ 0.5 ×", f"{mine:,.0f} against {theirs:,.0f} MiB"))
    return rows


def deep_rows() -> list[Row]:
    """The character Transformer without and with all of its losses, against torch's layers."""
    plain = CharTransformerConfig(**DEEP, intermediate_losses=False, second_target=False)
    every = CharTransformerConfig(**DEEP)
    steps = [training(CharTransformer(config), DEEP_STREAMS, DEEP["context"]) for config in (plain, every)]
    own, all_losses, theirs = (statistics.median(t) for t in in_turn(*steps, torch_layers(plain), repeats=8))
    read = DEEP_STREAMS * DEEP["context"]
    return [
        (
            "character Transformer without auxiliary losses, training, against torch's layers",
            f"{theirs / own:.2f} ×",
            "≥ 0.95 ×",
            f"{read / own:,.0f} against {read / theirs:,.0f} bytes/s",
        ),
        (
            "character Transformer with all losses active, slower than without by",
            f"{all_losses / own - 1:.0%}",
            "≤ 25 %",
            f"{read / all_losses:,.0f} against {read / own:,.0f} bytes/s",
        ),
    ]


def main() -> None:
    """Measure, print, write."""
    keep_freed_memory()
    before, difference = surroundings(), agreement()
    assert difference < 1e-4, f"the two do not compute the same: {difference}"
    about = [
        "Transformer-XL: 4 layers of 256, 4 heads, feed-forward 1,024, memory 1,024, T 256, B 16; the twin",
        "(`benchmarks/published_xl.py`) computes the same function the published way (largest difference of outputs",
        f"{difference:.0e}). Character Transformer: 12 layers of 256, 4 heads, feed-forward 1,024, context 256, B 8,",
        "against `torch.nn.TransformerEncoderLayer`s of the same sizes. The same optimiser, threads and malloc.",
        "Products of the twin come from the library that torch takes by itself, and once more from the one that ours",
        "chooses (`layers/products.py`), as torch's layers do. Medians, in turn. What is wanted of speed and of memory",
        "is wanted of one setting of `recompute` together, not of each.",
    ]
    write("speed_rivals.md", "Speed of the rivals", before, about, [*xl_rows(), *deep_rows()])


if __name__ == "__main__":
    main()
