"""Published weights under their original names, as tensors: modules are never unpickled.

`load_sha_rnn` takes the state dict of the SHA-RNN's published code (their names and ours stand side by side in
`_SHA_RNN_BLOCK`), infers every size, and gives a model that computes the same under the rule it was measured with.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from torch import Tensor

from headcount.errors import RequestError
from headcount.models.sha_rnn import ShaRnn, ShaRnnConfig

_NORMS = {"lnstart": "start_norm", "lnff": "skip_norm", "lnxff": "boom_norm"}
_SHA_RNN_BLOCK = {
    **{f"{theirs}.{part}": f"{ours}.{part}" for theirs, ours in _NORMS.items() for part in ("weight", "bias")},
    **{f"rnn.{part}_l0": f"lstm.{part}_l0" for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")},
    "ff.linear1.weight": "boom.up.weight",
    "ff.linear1.bias": "boom.up.bias",
}
_SHA_RNN_ATTENTION = {
    "lnmid.weight": "mid_norm.weight",
    "lnmid.bias": "mid_norm.bias",
    "lnmem.weight": "memory_norm.weight",
    "lnmem.bias": "memory_norm.bias",
    "attn.qs": "attention.query_gate",
    "attn.ks": "attention.key_gate",
    "attn.vs": "attention.value.raw",
    "attn.q.weight": "attention.query.weight",
    "attn.q.bias": "attention.query.bias",
    "attn.qln.weight": "attention.query_norm.weight",
    "attn.qln.bias": "attention.query_norm.bias",
    "attn.vq.l1.weight": "attention.value.mix.weight",
    "attn.vq.l1.bias": "attention.value.mix.bias",
}
# Allocated by the published code and never used.
_SHA_RNN_DEAD = re.compile(r"pos_emb(\..*)?|blocks\.\d+\.(lnout\.(weight|bias)|attn\.(qkvs|r_gate)(\..*)?)")
_SHA_RNN_DEAD_WITHOUT_ATTENTION = re.compile(r"blocks\.\d+\.(lnmid|lnmem)\.(weight|bias)")


def load_sha_rnn(state_dict: Mapping[str, Tensor], window: int = 5_000) -> ShaRnn:
    """A ready model from the original names, under the rule "segment"; anything unknown is refused by name."""
    count = 1 + max((int(m[1]) for m in (re.match(r"blocks\.(\d+)\.", name) for name in state_dict) if m), default=-1)
    attention = tuple(i for i in range(count) if f"blocks.{i}.attn.q.weight" in state_dict)
    names = {"encoder.weight": "head.weight", "decoder.bias": "head.bias"}
    for i in range(count):
        pairs = {**_SHA_RNN_BLOCK, **(_SHA_RNN_ATTENTION if i in attention else {})}
        names |= {f"blocks.{i}.{theirs}": f"blocks.{i}.{ours}" for theirs, ours in pairs.items()}
    _refuse_strangers(state_dict, names, attention)

    embedding = state_dict["encoder.weight"]
    vocabulary, width = embedding.shape
    if not embedding.equal(state_dict["decoder.weight"]):
        raise RequestError("decoder.weight is not encoder.weight: the SHA-RNN's embedding and classifier are one table")
    boom, rest = divmod(state_dict["blocks.0.ff.linear1.weight"].shape[0], width)
    if rest:
        raise RequestError(f"blocks.0.ff.linear1.weight: its rows are not a multiple of the width {width}")
    config = ShaRnnConfig(
        vocabulary=vocabulary,
        width=width,
        blocks=count,
        attention=attention,
        window=window,
        window_rule="segment",
        boom=boom,
        init="paper",
    )
    model = ShaRnn.blank(config, dtype=embedding.dtype, device=embedding.device)
    wanted = model.state_dict()
    tensors = {}
    for theirs, ours in names.items():
        flat = state_dict[theirs].flatten() if wanted[ours].ndim == 1 else state_dict[theirs]  # gates are 1 × 1 × H
        if flat.shape != wanted[ours].shape:
            raise RequestError(f"{theirs} has the shape {tuple(flat.shape)}, not {tuple(wanted[ours].shape)}")
        tensors[ours] = flat
    model.load_state_dict(tensors)
    return model.eval()


def _refuse_strangers(state_dict: Mapping[str, Tensor], names: Mapping[str, str], attention: tuple[int, ...]) -> None:
    known = {*names, "decoder.weight"}
    missing = sorted(known - set(state_dict))
    if missing or len(names) == 2:
        raise RequestError(f"these are not the weights of a SHA-RNN: missing {', '.join(missing) or 'blocks'}")
    for name in set(state_dict) - known:
        dead = _SHA_RNN_DEAD.fullmatch(name)
        unused = _SHA_RNN_DEAD_WITHOUT_ATTENTION.fullmatch(name) and int(name.split(".")[1]) not in attention
        if not dead and not unused:
            raise RequestError(f"{name} is not a tensor of the published SHA-RNN")
