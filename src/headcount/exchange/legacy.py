"""Published weights under their original names, as tensors: modules are never unpickled.

`load_sha_rnn` takes the state dict of the SHA-RNN's published code (their names and ours stand side by side in
`_SHA_RNN_BLOCK`), infers every size, and gives a model that computes the same under the rule it was measured with.
`load_transformer_xl` takes a Transformer-XL under Hugging Face's names or the original repository's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from headcount.errors import RequestError
from headcount.layers.positions import frequencies
from headcount.models.sha_rnn import ShaRnn, ShaRnnConfig
from headcount.models.transformer_xl import TransformerXL, TransformerXLConfig

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


# What a config.json that leaves a key out means.
_HUGGING_FACE = {
    "vocab_size": 267_735,
    "cutoffs": (20_000, 40_000, 200_000),
    "d_model": 1_024,
    "d_embed": 1_024,
    "n_head": 16,
    "d_head": 64,
    "d_inner": 4_096,
    "div_val": 4,
    "pre_lnorm": False,
    "n_layer": 18,
    "mem_len": 1_600,
    "clamp_len": 1_000,
    "same_length": True,
    "dropout": 0.1,
    "dropatt": 0.0,
    "layer_norm_epsilon": 1e-5,
    "attn_type": 0,
}
_PREFIX = "transformer."
_XL_LAYER = {
    "dec_attn.r_net.weight": "attention.distance.weight",
    "dec_attn.o_net.weight": "attention.out.weight",
    **{f"dec_attn.layer_norm.{part}": f"attention_norm.{part}" for part in ("weight", "bias")},
    **{f"pos_ff.CoreNet.0.{part}": f"up.{part}" for part in ("weight", "bias")},
    **{f"pos_ff.CoreNet.3.{part}": f"down.{part}" for part in ("weight", "bias")},
    **{f"pos_ff.layer_norm.{part}": f"feed_norm.{part}" for part in ("weight", "bias")},
}
_XL_BIASES = {"r_w_bias": "content_bias", "r_r_bias": "distance_bias"}


def load_transformer_xl(state_dict: Mapping[str, Tensor], config: Mapping[str, Any]) -> TransformerXL:
    """A ready model from Hugging Face's names and the keys of their config.json.

    Without their prefix "transformer." the names are the original repository's: its memory begins empty and its cluster
    rows stand in reverse. Keys that are left out have Hugging Face's defaults and unknown ones are ignored; unknown
    tensors are refused. `same_length`, `mem_len` and `clamp_len` are obeyed.
    """
    original = not any(name.startswith(_PREFIX) for name in state_dict)
    theirs = {name.removeprefix(_PREFIX): tensor for name, tensor in state_dict.items()}
    named = {"vocab_size": config["n_token"]} if "n_token" in config else {}
    keys = {**_HUGGING_FACE, **named, **config}
    if not theirs:
        raise RequestError("these are not the weights of a Transformer-XL: there are none")
    ours = _xl_config(keys, theirs, original)
    like = next(iter(theirs.values()))
    model = TransformerXL.blank(ours, dtype=like.dtype, device=like.device)
    taken = _Taken(theirs)
    tensors = {**_xl_layers(taken, ours), **_xl_head(taken, ours, original)}
    tensors["frequencies"] = taken.optional("pos_emb.inv_freq", frequencies(ours.width))
    taken.refuse_the_rest()
    for name, wanted in model.state_dict().items():
        if name not in tensors or tensors[name].shape != wanted.shape:
            found = "missing" if name not in tensors else f"of shape {tuple(tensors[name].shape)}"
            raise RequestError(f"the tensor for {name} is {found}; the config wants {tuple(wanted.shape)}")
    model.load_state_dict(tensors)
    return model.eval()


class _Taken:
    """A state dict of which every tensor is asked for by name, once; what nobody asked for is refused."""

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        self.tensors, self.left = tensors, set(tensors)

    def __call__(self, name: str) -> Tensor:
        if name not in self.tensors:
            raise RequestError(f"these are not the weights of such a Transformer-XL: {name} is missing")
        self.left.discard(name)
        return self.tensors[name]

    def optional(self, name: str, default: Any = None) -> Any:
        return self(name) if name in self.tensors else default

    def refuse_the_rest(self) -> None:
        if self.left:
            raise RequestError(f"{min(self.left)} is not a tensor of the published Transformer-XL")


def _xl_config(keys: Mapping[str, Any], theirs: Mapping[str, Tensor], original: bool) -> TransformerXLConfig:
    if keys["attn_type"] != 0:
        raise RequestError(f"attn_type = {keys['attn_type']}: only 0, attention by distance, has published weights")
    cutoffs, vocabulary = tuple(keys["cutoffs"]), keys["vocab_size"]
    cutoffs = cutoffs[:-1] if cutoffs and cutoffs[-1] == vocabulary else cutoffs
    projects = keys["div_val"] > 1 or keys["d_embed"] != keys["d_model"]
    plain = not cutoffs and not projects
    try:
        return TransformerXLConfig(
            vocabulary=vocabulary,
            width=keys["d_model"],
            layers=keys["n_layer"],
            heads=keys["n_head"],
            head_width=keys["d_head"],
            inner=keys["d_inner"],
            window=keys["mem_len"],
            window_rule="exact" if keys["same_length"] else "memory",
            memory_start="empty" if original else "zeros",
            norm="pre" if keys["pre_lnorm"] else "post",
            shared_biases="r_w_bias" in theirs,
            clamp=keys["clamp_len"] if keys["clamp_len"] > 0 else None,
            cutoffs=cutoffs,
            division=keys["div_val"],
            embedding_width=None if plain else keys["d_embed"],
            tied_projections=_tied(theirs, len(cutoffs) + 1, keys["div_val"]) if projects else (),
            dropout=keys["dropout"],
            attention_dropout=keys["dropatt"],
            eps=keys["layer_norm_epsilon"],
        )
    except (ValueError, TypeError) as error:
        raise RequestError(f"config: {error}") from None


def _tied(theirs: Mapping[str, Tensor], bands: int, division: int) -> tuple[bool, ...]:
    """Which bands go out by the projection they came in by: it is not there a second time, or is the same."""
    pairs = [(f"crit.out_projs.{b}", f"word_emb.emb_projs.{b if division > 1 else 0}") for b in range(bands)]
    return tuple(out not in theirs or (into in theirs and theirs[out].equal(theirs[into])) for out, into in pairs)


def _xl_layers(taken: _Taken, config: TransformerXLConfig) -> dict[str, Tensor]:
    tensors = {}
    for ours, shared in ((ours, taken.optional(theirs)) for theirs, ours in _XL_BIASES.items()):
        if config.shared_biases:
            tensors[ours] = shared
    for i in range(config.layers):
        for theirs, ours in _XL_LAYER.items():
            tensors[f"layers.{i}.{ours}"] = taken(f"layers.{i}.{theirs}")
        query, *rest = torch.split(taken(f"layers.{i}.dec_attn.qkv_net.weight"), config.heads * config.d)
        tensors[f"layers.{i}.attention.query.weight"] = query
        tensors[f"layers.{i}.attention.key_value.weight"] = torch.cat(rest)
        for theirs, ours in _XL_BIASES.items():
            own = taken.optional(f"layers.{i}.dec_attn.{theirs}")
            if not config.shared_biases:
                tensors[f"layers.{i}.attention.{ours}"] = own
            elif own is not None and not own.equal(tensors[ours]):
                raise RequestError(f"layers.{i}.dec_attn.{theirs} is not the {theirs} that all layers share")
    return {name: tensor for name, tensor in tensors.items() if tensor is not None}


def _xl_head(taken: _Taken, config: TransformerXLConfig, original: bool) -> dict[str, Tensor]:
    if not config.cutoffs and config.embedding_width is None:
        return {"head.weight": _table(taken, 0), "head.bias": taken("crit.out_layers.0.bias")}
    tables = len(config.cutoffs) + 1 if config.division > 1 else 1
    tensors = {}
    for b in range(tables):
        tensors[f"head.tables.{b}"] = _table(taken, b)
        tensors[f"head.biases.{b}"] = taken(f"crit.out_layers.{b}.bias")
        if config.tied_projections:
            tensors[f"head.input_projections.{b}"] = taken(f"word_emb.emb_projs.{b}")
    for b, tied in enumerate(config.tied_projections):
        projection = taken.optional(f"crit.out_projs.{b}")
        if not tied:
            tensors[f"head.output_projections.{b}"] = projection
    if config.cutoffs:
        for part in ("weight", "bias"):
            rows = taken(f"crit.cluster_{part}")
            tensors[f"head.cluster_{part}"] = rows.flip(0) if original else rows
    return tensors


def _table(taken: _Taken, band: int) -> Tensor:
    """Embedding and classifier of a band, which are one."""
    name = f"word_emb.emb_layers.{band}.weight"
    table, again = taken(name), taken.optional(f"crit.out_layers.{band}.weight")
    if again is not None and not again.equal(table):
        raise RequestError(f"crit.out_layers.{band}.weight is not {name}: the embedding and the classifier are one")
    return table
