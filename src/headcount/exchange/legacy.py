"""Published weights under their original names, as tensors: modules are never unpickled.

`load_sha_rnn` takes the state dict of the SHA-RNN's published code (their names and ours stand side by side in
`_SHA_RNN_BLOCK`), infers every size, and gives a model that computes the same under the rule it was measured with.
`load_transformer_xl` takes a Transformer-XL under Hugging Face's names or the original repository's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, get_type_hints

import torch
from torch import Tensor

from headcount.errors import RequestError
from headcount.layers.positions import frequencies
from headcount.models.sha_rnn import ShaRnn, ShaRnnConfig
from headcount.models.transformer_xl import TransformerXL, TransformerXLConfig
from headcount.recipe import check_table, check_value

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
# Keys with a counterpart of ours, which says what they may be; `n_token` is the original repository's `vocab_size`.
_XL_KEYS = {
    "n_token": "vocabulary",
    "vocab_size": "vocabulary",
    "cutoffs": "cutoffs",
    "d_model": "width",
    "d_embed": "embedding_width",
    "n_head": "heads",
    "d_head": "head_width",
    "d_inner": "inner",
    "div_val": "division",
    "n_layer": "layers",
    "mem_len": "window",
    "dropout": "dropout",
    "dropatt": "attention_dropout",
    "layer_norm_epsilon": "eps",
}
# Keys without one, and their types.
_XL_SWITCHES: Mapping[str, type] = {"clamp_len": int, "same_length": bool, "pre_lnorm": bool, "attn_type": int}
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
    if not theirs:
        raise RequestError("these are not the weights of a Transformer-XL: there are none")
    for name, tensor in theirs.items():
        if not isinstance(tensor, Tensor) or not tensor.is_floating_point():
            raise RequestError(f"{name} is not a tensor of floating-point numbers")
    ours, like = _xl_config(config, theirs, original), next(iter(theirs.values()))
    # Shapes alone first: whatever a config asks for, no memory is taken that the tensors do not fill.
    taken = _Taken(theirs, TransformerXL.blank(ours, device="meta").state_dict())
    tensors = {**_xl_layers(taken, ours), **_xl_head(taken, ours, original)}
    tensors["frequencies"] = taken.optional("pos_emb.inv_freq", "frequencies", frequencies(ours.width))
    taken.refuse_the_rest()
    model = TransformerXL.blank(ours, dtype=like.dtype, device=like.device)
    model.load_state_dict(tensors)
    return model.eval()


class _Taken:
    """A state dict of which every tensor is asked for by name, once; what nobody asked for is refused."""

    def __init__(self, tensors: Mapping[str, Tensor], ours: Mapping[str, Tensor]) -> None:
        self.tensors, self.ours, self.left = tensors, ours, set(tensors)

    def __call__(self, name: str, ours: str, times: int = 1) -> Tensor:
        """It is as large as one of ours, or has so many times its rows."""
        if name not in self.tensors:
            raise RequestError(f"these are not the weights of such a Transformer-XL: {name} is missing")
        self.left.discard(name)
        found, (rows, *rest) = self.tensors[name], self.ours[ours].shape
        if found.shape != (times * rows, *rest):
            raise RequestError(f"{name} has the shape {tuple(found.shape)}; the config wants {(times * rows, *rest)}")
        return found

    def optional(self, name: str, ours: str, default: Any = None) -> Any:
        return self(name, ours) if name in self.tensors else default

    def refuse_the_rest(self) -> None:
        if self.left:
            raise RequestError(f"{min(self.left)} is not a tensor of the published Transformer-XL")


def _xl_settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """Their keys that mean something here, each of the kind and in the range that it must be, under our names."""
    defaults = {key: value for key, value in _HUGGING_FACE.items() if key != "vocab_size" or "n_token" not in config}
    given, hints, settings = {**defaults, **config}, get_type_hints(TransformerXLConfig, include_extras=True), {}
    for key in (*_XL_KEYS, *_XL_SWITCHES):
        if key in given:
            if given[key] is None:  # which some of ours may be
                raise RequestError(f"config.{key} = None: must have a value, or be left out")
            ours = _XL_KEYS.get(key, key)
            settings[ours] = check_value(_XL_SWITCHES.get(key) or hints[ours], given[key], f"config.{key}")
    return settings


def _xl_config(config: Mapping[str, Any], theirs: Mapping[str, Tensor], original: bool) -> TransformerXLConfig:
    settings = _xl_settings(config)
    clamp, same_length, pre_norm, kind = (settings.pop(key) for key in _XL_SWITCHES)
    if kind != 0:
        raise RequestError(f"config.attn_type = {kind}: only 0, attention by distance, has published weights")
    if same_length and not settings["window"]:
        raise RequestError("config.mem_len = 0: with same_length a query sees so many keys, and itself at least")
    cutoffs, width, division = settings["cutoffs"], settings["embedding_width"], settings["division"]
    cutoffs = cutoffs[:-1] if cutoffs and cutoffs[-1] == settings["vocabulary"] else cutoffs
    if width < division ** len(cutoffs):
        raise RequestError(f"config.div_val = {division}: nothing is left of d_embed = {width} in the last band")
    projects = division > 1 or width != settings["width"]
    settings |= {
        "window_rule": "exact" if same_length else "memory",
        "memory_start": "empty" if original else "zeros",
        "norm": "pre" if pre_norm else "post",
        "shared_biases": not theirs.keys().isdisjoint(_XL_BIASES),
        "clamp": clamp if clamp > 0 else None,
        "cutoffs": cutoffs,
        "embedding_width": width if cutoffs or projects else None,
        "tied_projections": _tied(theirs, len(cutoffs) + 1, division) if projects else (),
    }
    return check_table(TransformerXLConfig, settings, "config")


def _tied(theirs: Mapping[str, Tensor], bands: int, division: int) -> tuple[bool, ...]:
    """Which bands go out by the projection they came in by: it is not there a second time, or is the same."""
    pairs = [(f"crit.out_projs.{b}", f"word_emb.emb_projs.{b if division > 1 else 0}") for b in range(bands)]
    return tuple(out not in theirs or (into in theirs and theirs[out].equal(theirs[into])) for out, into in pairs)


def _xl_layers(taken: _Taken, config: TransformerXLConfig) -> dict[str, Tensor]:
    tensors = {ours: taken(theirs, ours) for theirs, ours in _XL_BIASES.items() if config.shared_biases}
    for i in range(config.layers):
        for theirs, ours in _XL_LAYER.items():
            tensors[f"layers.{i}.{ours}"] = taken(f"layers.{i}.{theirs}", f"layers.{i}.{ours}")
        query = f"layers.{i}.attention.query.weight"
        parts = taken(f"layers.{i}.dec_attn.qkv_net.weight", query, times=3).chunk(3)
        tensors[query] = parts[0]
        tensors[f"layers.{i}.attention.key_value.weight"] = torch.cat(parts[1:])
        for theirs, ours in _XL_BIASES.items():
            name = f"layers.{i}.dec_attn.{theirs}"
            if not config.shared_biases:
                tensors[f"layers.{i}.attention.{ours}"] = taken(name, f"layers.{i}.attention.{ours}")
            elif not taken.optional(name, ours, tensors[ours]).equal(tensors[ours]):
                raise RequestError(f"{name} is not the {theirs} that all layers share")
    return tensors


def _xl_head(taken: _Taken, config: TransformerXLConfig, original: bool) -> dict[str, Tensor]:
    if not config.cutoffs and config.embedding_width is None:
        table, bias = "head.weight", "head.bias"
        return {table: _table(taken, 0, table), bias: taken("crit.out_layers.0.bias", bias)}
    tables = len(config.cutoffs) + 1 if config.division > 1 else 1
    tensors = {}
    for b in range(tables):
        table, bias, into = f"head.tables.{b}", f"head.biases.{b}", f"head.input_projections.{b}"
        tensors[table] = _table(taken, b, table)
        tensors[bias] = taken(f"crit.out_layers.{b}.bias", bias)
        if config.tied_projections:
            tensors[into] = taken(f"word_emb.emb_projs.{b}", into)
    for b, tied in enumerate(config.tied_projections):
        if tied:  # there a second time, perhaps
            taken.optional(f"crit.out_projs.{b}", f"head.input_projections.{b if config.division > 1 else 0}")
        else:
            out = f"head.output_projections.{b}"
            tensors[out] = taken(f"crit.out_projs.{b}", out)
    if config.cutoffs:
        for part in ("cluster_weight", "cluster_bias"):
            rows = taken(f"crit.{part}", f"head.{part}")
            tensors[f"head.{part}"] = rows.flip(0) if original else rows
    return tensors


def _table(taken: _Taken, band: int, ours: str) -> Tensor:
    """Embedding and classifier of a band, which are one."""
    name, again = f"word_emb.emb_layers.{band}.weight", f"crit.out_layers.{band}.weight"
    table = taken(name, ours)
    if not taken.optional(again, ours, table).equal(table):
        raise RequestError(f"{again} is not {name}: the embedding and the classifier are one")
    return table
