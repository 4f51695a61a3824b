"""What is tried: changes of the base recipe, by settings or by hand (`benchmarks.tune` runs them)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from headcount.models.contract import Loss, Model, ModelState


def forget_bias(value: float) -> Callable[[nn.Module], None]:
    """Both biases of every forget gate begin at half of this."""

    def change(model: nn.Module) -> None:
        for name, parameter in model.named_parameters():
            if name.endswith(("bias_ih_l0", "bias_hh_l0")):
                width = len(parameter) // 4
                with torch.no_grad():
                    parameter[width : 2 * width] = value / 2

    return change


def timescales(longest: float) -> Callable[[nn.Module], None]:
    """Forget gates begin so that units remember for 1 … `longest` steps, and input gates the other way round."""

    def change(model: nn.Module) -> None:
        for name, parameter in model.named_parameters():
            if name.endswith("bias_ih_l0"):
                width = len(parameter) // 4
                spread = torch.empty(width).uniform_(1.0, longest - 1.0).log()
                with torch.no_grad():
                    parameter[:width] = -spread
                    parameter[width : 2 * width] = spread

    return change


def orthogonal(model: nn.Module) -> None:
    """Recurrent matrices begin orthogonal, gate by gate."""
    for name, parameter in model.named_parameters():
        if name.endswith("weight_hh_l0"):
            for gate in parameter.chunk(4):
                nn.init.orthogonal_(gate)


def head_begins(gates: float, value: float) -> Callable[[nn.Module], None]:
    """Gates of queries and keys begin at σ(gates); values at about ±σ(value)·tanh(value), signs drawn."""

    def change(model: nn.Module) -> None:
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if name.endswith(("query_gate", "key_gate")):
                    parameter.fill_(gates)
                if name.endswith("value.mix.bias"):
                    width = len(parameter) // 2
                    parameter[:width] = value * torch.randint(0, 2, (width,)).mul(2).sub(1)
                    parameter[width:] = value

    return change


def scaled(ending: str, factor: float) -> Callable[[nn.Module], None]:
    """Parameters by the end of their name begin larger."""

    def change(model: nn.Module) -> None:
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if name.endswith(ending):
                    parameter.mul_(factor)

    return change


def growing_window(first: int) -> Callable[[nn.Module], None]:
    """The head's window grows from `first` to the Config's over the first half, in four steps."""

    def change(model: Model) -> None:
        plain, last = model.objective, model.config.window

        def objective(tokens: Tensor, state: ModelState, progress: float) -> tuple[Loss, ModelState]:
            for block in state.blocks:
                block.memory.window = round(first * (last / first) ** (min(int(8 * progress), 4) / 4))
            return plain(tokens, state, progress)

        model.objective = objective

    return change


def losses_at_every_block(weight: float) -> Callable[[nn.Module], None]:
    """Block l of n also predicts, through the same head, until l/2n of training, as in the character Transformer."""

    def change(model: Model) -> None:
        plain, passed = model.objective, []
        for block in model.blocks[:-1]:
            block.register_forward_hook(lambda block, given, returned: passed.append(returned[0]))

        def objective(tokens: Tensor, state: ModelState, progress: float) -> tuple[Loss, ModelState]:
            passed.clear()
            loss, after = plain(tokens, state, progress)
            parts = {"nll": loss.parts["nll"]}
            for number, hidden in enumerate(passed, start=1):
                if progress < number / (2 * len(model.blocks)):
                    parts[f"block {number}"] = model.head.nll(hidden.transpose(0, 1), tokens[:, 1:]).mean()
            return Loss(parts, {name: 1.0 if name == "nll" else weight for name in parts}), after

        model.objective = objective

    return change


def ngrams_to_the_head(model: Model) -> None:
    """The vectors of n-grams also go past the blocks, straight to the head."""
    plain = model.advance

    def advance(tokens: Tensor, state: ModelState) -> tuple[Tensor, ModelState]:
        hidden, after = plain(tokens, state)
        return hidden + model.ngrams(tokens, state.recent), after

    model.advance = advance


@dataclass(frozen=True)
class Trial:
    """A change of the base, by settings or by hand, and the budget in base steps."""

    name: str
    settings: tuple[str, ...] = ()
    change: Callable[[nn.Module], None] | None = None
    budget: int = 2_000
    model: str = "sha-rnn"


XL, CHAR = "transformer-xl", "char-transformer"
COMMON = {
    "corpus": {"name": "enwik8"},
    "schedule": {"kind": "cosine", "warmup": 0.05, "floor": 0.05},
    "evaluate": {"protocol": "carried", "limit": 262_144},
}
ADAMW = {"kind": "adamw", "betas": [0.9, 0.99], "weight_decay": 0.01, "clip": 0.25}
BASES = {
    "sha-rnn": {
        **COMMON,
        "model": {"kind": "sha-rnn", "width": 320, "blocks": 1, "attention": [0], "window": 256},
        "batches": {"streams": 8, "segment": 128},
        "optimiser": {**ADAMW, "lr": 3e-3},
    },
    XL: {
        **COMMON,
        "model": {"kind": "transformer-xl", "width": 192, "layers": 3, "heads": 4, "inner": 768, "window": 256},
        "batches": {"streams": 8, "segment": 128},
        "optimiser": {**ADAMW, "lr": 2e-3},
    },
    CHAR: {
        **COMMON,
        "model": {"kind": "char-transformer", "width": 192, "layers": 3, "heads": 2, "inner": 768, "context": 256},
        "batches": {"kind": "windows", "streams": 8, "segment": 256},
        "optimiser": {**ADAMW, "lr": 1e-3},
        "evaluate": {"protocol": "sliding-64", "limit": 262_144},
    },
}
"""What trials change, by model. The budget is always counted in steps of the SHA-RNN's base."""


SHORT = ("model.boom=2", "model.window=128", "batches.streams=16", "batches.segment=64")
NGRAMS = ("model.width=256", "model.ngrams=[2, 3, 4, 5]")
WIDE_NGRAMS = (*NGRAMS, "model.ngram_rows=11264")
NARROW_NGRAMS = (*NGRAMS, "model.width=192", "model.ngram_rows=16384")
NARROWEST_NGRAMS = (*NGRAMS, "model.width=128", "model.ngram_rows=26624")
TWO_BLOCKS = ("model.boom=2", "model.width=256", "model.blocks=2")
PRE = ("model.norm=pre", "model.final_norm=true")
NARROW = ("model.width=128", "model.inner=512")
WIDER = ("model.width=192", "model.inner=768")
LINEAR = ("schedule.kind=linear", "schedule.floor=0.0")
PLAIN = ("model.intermediate_losses=false", "model.second_target=false")
CONTEXT_64 = ("model.context=64", "batches.segment=64", "batches.streams=16", "evaluate.protocol=sliding-16")
CONTEXT_128 = ("model.context=128", "batches.segment=128", "evaluate.protocol=sliding-32")
XL_TRIALS: dict[str, tuple[str, ...]] = {
    "base": (),
    "norms before": PRE,
    "norms before, width 128": (*PRE, *NARROW),
    "lr 1e-3": ("optimiser.lr=0.001",),
    "lr 4e-3": ("optimiser.lr=0.004",),
    "width 128": NARROW,
    "streams 4": ("batches.streams=4",),
    "layers 2": ("model.layers=2",),
    "width 128, layers 2": (*NARROW, "model.layers=2"),
    "width 128, segment 64": (*NARROW, "batches.segment=64"),
    "width 128, weights begin at 0.05": (*NARROW, "model.init_std=0.05"),
    "width 128, weights begin at 0.09": (*NARROW, "model.init_std=0.09"),
    "width 128, weights begin at 0.09, layers 2": (*NARROW, "model.init_std=0.09", "model.layers=2"),
    "width 128, weights begin at 0.09, lr 4e-3": (*NARROW, "model.init_std=0.09", "optimiser.lr=0.004"),
}
XL_DESK = (*NARROW, "model.init_std=0.09")
XL_NEXT: dict[str, tuple[str, ...]] = {
    "another seed": ("seed=2",),
    "norms before, lr 4e-3": (*PRE, "optimiser.lr=0.004"),
    "layers 2, width 192": ("model.layers=2", *WIDER, "model.init_std=0.07"),
    "lr 3e-3, warm-up 10 %": ("optimiser.lr=0.003", "schedule.warmup=0.1"),
    "layers 2, inner 1,024": ("model.layers=2", "model.inner=1024"),
    "window 128": ("model.window=128",),
    "norms before, layers 2, lr 6e-3": (*PRE, "model.layers=2", "optimiser.lr=0.006"),
    "layers 2, lr 3e-3": ("model.layers=2", "optimiser.lr=0.003"),
    "16 × 64, window 128, lr 3e-3": (
        "batches.streams=16",
        "batches.segment=64",
        "model.window=128",
        "optimiser.lr=0.003",
    ),
    "heads 2": ("model.heads=2",),
    "clip 1": ("optimiser.clip=1.0",),
    "beta2 0.999": ("optimiser.betas=[0.9, 0.999]",),
    "norms before, layers 2, width 192, lr 3e-3": (
        *PRE,
        *WIDER,
        "model.init_std=0.07",
        "model.layers=2",
        "optimiser.lr=0.003",
    ),
    "layers 2, window 128, width 160": (
        "model.layers=2",
        "model.window=128",
        "model.width=160",
        "model.inner=640",
        "model.init_std=0.08",
    ),
    "u and v of every layer": ("model.shared_biases=false",),
    "weights begin at 0.125": ("model.init_std=0.125",),
}
CHAR_TRIALS: dict[str, tuple[str, ...]] = {
    "base": (),
    "no auxiliary losses": PLAIN,
    "lr 2e-3": ("optimiser.lr=0.002",),
    "lr 4e-3": ("optimiser.lr=0.004",),
    "layers 2": ("model.layers=2",),
    "width 128": NARROW,
    "context 128": CONTEXT_128,
    "streams 4": ("batches.streams=4",),
    "norms after": ("model.norm=post",),
    "no auxiliary losses, lr 4e-3": (*PLAIN, "optimiser.lr=0.004"),
    "context 128, lr 4e-3": (*CONTEXT_128, "optimiser.lr=0.004"),
    "context 128, width 128, lr 4e-3": (*CONTEXT_128, *NARROW, "optimiser.lr=0.004"),
    "context 64, lr 4e-3": (*CONTEXT_64, "optimiser.lr=0.004"),
    "context 64, lr 8e-3": (*CONTEXT_64, "optimiser.lr=0.008"),
    "context 64, width 128, lr 4e-3": (*CONTEXT_64, *NARROW, "optimiser.lr=0.004"),
}
CHAR_DESK = (*CONTEXT_64, *NARROW, "optimiser.lr=0.004")
CHAR_NEXT: dict[str, tuple[str, ...]] = {
    "no auxiliary losses": PLAIN,
    "no losses of lower layers": ("model.intermediate_losses=false",),
    "no second target": ("model.second_target=false",),
    "no auxiliary losses, context 128": (*PLAIN, *CONTEXT_128, "batches.streams=8"),
    "no auxiliary losses, width 192, lr 3e-3": (*PLAIN, *WIDER, "optimiser.lr=0.003"),
    "no auxiliary losses, layers 4": (*PLAIN, "model.layers=4"),
    "lr 6e-3, warm-up 10 %": ("optimiser.lr=0.006", "schedule.warmup=0.1"),
    "lr 3e-3": ("optimiser.lr=0.003",),
    "layers 2, inner 1,024": ("model.layers=2", "model.inner=1024"),
    "streams 8, lr 3e-3": ("batches.streams=8", "optimiser.lr=0.003"),
    "clip 1": ("optimiser.clip=1.0",),
    "heads 4": ("model.heads=4",),
    "beta2 0.999": ("optimiser.betas=[0.9, 0.999]",),
    "layers 2, width 192, lr 3e-3": ("model.layers=2", *WIDER, "optimiser.lr=0.003"),
    "context 96": ("model.context=96", "batches.segment=96", "batches.streams=11", "evaluate.protocol=sliding-24"),
    "mean over layers": ("model.layer_reduction=mean",),
    "context 32": ("model.context=32", "batches.segment=32", "batches.streams=32", "evaluate.protocol=sliding-8"),
}
XL_SMALL = XL_NEXT["layers 2, window 128, width 160"]
XL_LAST: dict[str, tuple[str, ...]] = {
    "lr 3e-3": ("optimiser.lr=0.003",),
    "window 64": ("model.window=64",),
    "width 192": (*WIDER, "model.init_std=0.07"),
    "inner 1,280": ("model.inner=1280",),
    "layers 3": ("model.layers=3",),
    "streams 4, lr 1.5e-3": ("batches.streams=4", "optimiser.lr=0.0015"),
    "lr 1.5e-3": ("optimiser.lr=0.0015",),
    "u and v of every layer": ("model.shared_biases=false",),
    "linear to 0": LINEAR,
}
CHAR_SMALL = CHAR_NEXT["layers 2, inner 1,024"]
CHAR_LAST: dict[str, tuple[str, ...]] = {
    "lr 3e-3": ("optimiser.lr=0.003",),
    "context 32, lr 3e-3": (*CHAR_NEXT["context 32"], "optimiser.lr=0.003"),
    "lr 2e-3": ("optimiser.lr=0.002",),
    "lr 3e-3, width 160": ("optimiser.lr=0.003", "model.width=160"),
    "lr 3e-3, beta2 0.999": ("optimiser.lr=0.003", "optimiser.betas=[0.9, 0.999]"),
    "lr 3e-3, no auxiliary losses": ("optimiser.lr=0.003", *PLAIN),
    "lr 3e-3, linear to 0": ("optimiser.lr=0.003", *LINEAR),
}
LONG_TRIAL = 6_000
"""Base steps that longer trials of the rivals have: the work of the SHA-RNN's whole runs that read 8 to 9 MB."""
XL_LEAN = ("model.layers=2", "model.window=128", "model.inner=1024")
SLOW_LINEAR = ("optimiser.betas=[0.9, 0.999]", *LINEAR)
XL_LONGER: dict[str, tuple[str, ...]] = {
    "as it is": (),
    "window 128": XL_NEXT["window 128"],
    "layers 2, window 128, width 160": XL_SMALL,
    "layers 3, window 128, width 160": (*XL_SMALL, "model.layers=3"),
    "layers 2, window 128, inner 1,024": XL_LEAN,
    "window 128, beta2 0.999, linear to 0": ("model.window=128", *SLOW_LINEAR),
    "layers 2, window 128, inner 1,024, linear to 0": (*XL_LEAN, *LINEAR),
    "layers 2, window 128, inner 1,024, lr 1.5e-3, linear to 0": (*XL_LEAN, "optimiser.lr=0.0015", *LINEAR),
    "layers 2, inner 1,024, linear to 0": ("model.layers=2", "model.inner=1024", *LINEAR),
    "layers 4, window 128, linear to 0": ("model.layers=4", "model.window=128", *LINEAR),
    "layers 2, window 128, width 192, lr 1.5e-3, linear to 0": (
        *XL_SMALL,
        *WIDER,
        "model.init_std=0.07",
        "optimiser.lr=0.0015",
        *LINEAR,
    ),
}
CHAR_LEAN = (*CHAR_SMALL, "optimiser.lr=0.003")
CHAR_NEXT_LONGER: dict[str, tuple[str, ...]] = {
    "lr 3e-3": CHAR_NEXT["lr 3e-3"],
    "layers 2, inner 1,024, lr 3e-3": CHAR_LEAN,
    "layers 2, inner 1,024, context 32, lr 3e-3": (*CHAR_LEAN, *CHAR_NEXT["context 32"]),
    "layers 2, inner 1,024, lr 3e-3, beta2 0.999, linear to 0": (*CHAR_LEAN, *SLOW_LINEAR),
    "lr 3e-3, beta2 0.999, linear to 0": ("optimiser.lr=0.003", *SLOW_LINEAR),
    "layers 2, inner 1,024, lr 2e-3, beta2 0.999, linear to 0": (*CHAR_SMALL, "optimiser.lr=0.002", *SLOW_LINEAR),
    "inner 1,024, lr 2e-3, beta2 0.999, linear to 0": ("model.inner=1024", "optimiser.lr=0.002", *SLOW_LINEAR),
    "layers 2, inner 1,024, lr 3e-3, no auxiliary losses, beta2 0.999, linear to 0": (
        *CHAR_LEAN,
        *PLAIN,
        *SLOW_LINEAR,
    ),
    "layers 2, inner 1,024, width 160, lr 3e-3, beta2 0.999, linear to 0": (
        *CHAR_LEAN,
        "model.width=160",
        *SLOW_LINEAR,
    ),
}
CHAR_LONGER = ("context 64, width 128, lr 4e-3", "context 128, width 128, lr 4e-3")
TRIALS = (
    Trial("base"),
    Trial("base, another seed", ("seed=2",)),
    Trial("forget bias 1", change=forget_bias(1.0)),
    Trial("clip 1", ("optimiser.clip=1.0",)),
    Trial("lr 4.5e-3", ("optimiser.lr=0.0045",)),
    Trial("segment 64", ("batches.segment=64",)),
    Trial("streams 4", ("batches.streams=4",)),
    Trial("streams 16, lr 4e-3", ("batches.streams=16", "optimiser.lr=0.004")),
    Trial("width 256", ("model.width=256",)),
    Trial("width 384", ("model.width=384",)),
    Trial("boom 2", ("model.boom=2",)),
    Trial("linear to 0", ("schedule.kind=linear", "schedule.floor=0.0")),
    Trial("cosine to 0", ("schedule.floor=0.0",)),
    Trial("beta2 0.95", ("optimiser.betas=[0.9, 0.95]",)),
    Trial("beta1 0.8", ("optimiser.betas=[0.8, 0.99]",)),
    Trial("weight decay 0.1", ("optimiser.weight_decay=0.1",)),
    Trial("timescales to 30", change=timescales(30.0)),
    Trial("boom 1", ("model.boom=1",)),
    Trial("short: boom 2, streams 16, segment 64, window 128", SHORT),
    Trial("short: width 256, lr 4e-3", (*SHORT, "model.width=256", "optimiser.lr=0.004")),
    Trial(
        "short: forget bias 1, linear to 0", (*SHORT, "schedule.kind=linear", "schedule.floor=0.0"), forget_bias(1.0)
    ),
    Trial("boom 2, head in the second of two blocks of 256", (*TWO_BLOCKS, "model.attention=[1]")),
    Trial("boom 2, two blocks of 256, head in the first", TWO_BLOCKS),
    Trial("boom 2, two blocks of 256, losses at every block", TWO_BLOCKS, losses_at_every_block(0.3)),
    Trial("width 256, orthogonal", ("model.width=256",), orthogonal),
    Trial("width 256, recurrent matrices × 2", ("model.width=256",), scaled("weight_hh_l0", 2.0)),
    Trial("width 256, forget bias 1", ("model.width=256",), forget_bias(1.0)),
    Trial("width 256, window 512", ("model.width=256", "model.window=512")),
    Trial("width 256, window 128", ("model.width=256", "model.window=128")),
    Trial("width 256, window growing 64 to 256", ("model.width=256",), growing_window(64)),
    Trial("width 256, head begins closed", ("model.width=256",), head_begins(0.0, 0.15)),
    Trial("width 256, heads open", ("model.width=256",)),
    Trial("width 256, n-grams of 2 … 5", NGRAMS),
    Trial("width 256, n-grams of 2 … 5, 11,264 rows", (*NGRAMS, "model.ngram_rows=11264")),
    Trial("width 256, n-grams of 2 … 5, tables begin at 0.02", NGRAMS, scaled("ngrams.table", 0.32)),
    Trial("width 256, n-grams of 3 … 6", ("model.width=256", "model.ngrams=[3, 4, 5, 6]")),
    Trial("width 256, n-grams of 2 … 9", ("model.width=256", "model.ngrams=[2, 3, 4, 5, 6, 7, 8, 9]")),
    Trial("n-grams of 2 … 5, 11,264 rows that begin at 0.02", WIDE_NGRAMS),
    Trial("n-grams of 2 … 5, 11,264 rows that begin at 0.02, also to the head", WIDE_NGRAMS, ngrams_to_the_head),
    Trial("n-grams of 2 … 5, 11,264 rows that begin at 0.02, boom 2", (*WIDE_NGRAMS, "model.boom=2")),
    Trial("n-grams of 2 … 5, 11,264 rows that begin at 0.02, lr 4e-3", (*WIDE_NGRAMS, "optimiser.lr=0.004")),
    Trial("n-grams of 2 … 5, 11,264 rows, boom 2, lr 2e-3", (*WIDE_NGRAMS, "model.boom=2", "optimiser.lr=0.002")),
    Trial("n-grams of 2 … 5, 16,384 rows, width 192, boom 2", (*NARROW_NGRAMS, "model.boom=2")),
    Trial("n-grams, 16,384 rows, width 192, boom 2, lr 2e-3", (*NARROW_NGRAMS, "model.boom=2", "optimiser.lr=0.002")),
    Trial("n-grams, 26,624 rows, width 128, boom 2, lr 3e-3", (*NARROWEST_NGRAMS, "model.boom=2")),
    Trial("segment 192", ("batches.segment=192",)),
    Trial("streams 6", ("batches.streams=6",)),
    *(Trial(f"xl: {name}", settings, model=XL) for name, settings in XL_TRIALS.items()),
    *(Trial(f"xl, desk: {name}", (*XL_DESK, *settings), model=XL) for name, settings in XL_NEXT.items()),
    *(Trial(f"char: {name}", settings, model=CHAR) for name, settings in CHAR_TRIALS.items()),
    *(Trial(f"char, desk: {name}", (*CHAR_DESK, *settings), model=CHAR) for name, settings in CHAR_NEXT.items()),
    *(Trial(f"xl, small: {name}", (*XL_DESK, *XL_SMALL, *own), model=XL) for name, own in XL_LAST.items()),
    *(Trial(f"char, small: {name}", (*CHAR_DESK, *CHAR_SMALL, *own), model=CHAR) for name, own in CHAR_LAST.items()),
    *(Trial(f"xl, desk: {name}", (*XL_DESK, *own), budget=LONG_TRIAL, model=XL) for name, own in XL_LONGER.items()),
    *(Trial(f"char: {name}", CHAR_TRIALS[name], budget=8_000, model=CHAR) for name in CHAR_LONGER),
    *(
        Trial(f"char, desk: {name}", (*CHAR_DESK, *own), budget=LONG_TRIAL, model=CHAR)
        for name, own in CHAR_NEXT_LONGER.items()
    ),
)
