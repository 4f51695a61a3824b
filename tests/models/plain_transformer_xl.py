"""Transformer-XL written out, pair by pair, from the published names: slow, plain, and the thing to agree with.

Weights are a dict under Hugging Face's names; `config` has their keys. `Plain.segment` reads B × T tokens after the
memories of earlier segments and gives B × T × V log-probabilities.
"""

import math

import torch


def random_weights(config, *, shared=False, tied=(), prefix="transformer.", seed=0):
    """Every tensor of such a model, drawn; `tied` says for each band whether in and out are one projection."""
    draw = torch.Generator().manual_seed(seed)

    def normal(*shape, mean=0.0):
        return mean + 0.3 * torch.randn(*shape, generator=draw, dtype=torch.float64)

    d, inner, heads, d_head = config["d_model"], config["d_inner"], config["n_head"], config["d_head"]
    weights = {}
    for b, (rows, width) in enumerate(tables(config)):
        weights[f"{prefix}word_emb.emb_layers.{b}.weight"] = normal(rows, width)
        weights[f"crit.out_layers.{b}.weight"] = weights[f"{prefix}word_emb.emb_layers.{b}.weight"].clone()
        weights[f"crit.out_layers.{b}.bias"] = normal(rows)
        if projects(config):
            weights[f"{prefix}word_emb.emb_projs.{b}"] = normal(d, width)
    if projects(config):
        for b in range(len(config["cutoffs"]) + 1):
            own = b if config["div_val"] > 1 else 0
            into = weights[f"{prefix}word_emb.emb_projs.{own}"]
            weights[f"crit.out_projs.{b}"] = into.clone() if tied[b] else normal(*into.shape)
    if config["cutoffs"]:
        weights["crit.cluster_weight"] = normal(len(config["cutoffs"]), config["d_embed"])
        weights["crit.cluster_bias"] = normal(len(config["cutoffs"]))
    weights[f"{prefix}pos_emb.inv_freq"] = 1 / 10_000 ** (torch.arange(0, d, 2, dtype=torch.float64) / d)
    if shared:
        weights[f"{prefix}r_w_bias"], weights[f"{prefix}r_r_bias"] = normal(heads, d_head), normal(heads, d_head)
    for n in range(config["n_layer"]):
        name = f"{prefix}layers.{n}."
        weights[f"{name}dec_attn.qkv_net.weight"] = normal(3 * heads * d_head, d)
        weights[f"{name}dec_attn.r_net.weight"] = normal(heads * d_head, d)
        weights[f"{name}dec_attn.o_net.weight"] = normal(d, heads * d_head)
        for norm in ("dec_attn", "pos_ff"):
            weights[f"{name}{norm}.layer_norm.weight"] = normal(d, mean=1.0)
            weights[f"{name}{norm}.layer_norm.bias"] = normal(d)
        weights[f"{name}pos_ff.CoreNet.0.weight"], weights[f"{name}pos_ff.CoreNet.0.bias"] = (
            normal(inner, d),
            normal(inner),
        )
        weights[f"{name}pos_ff.CoreNet.3.weight"], weights[f"{name}pos_ff.CoreNet.3.bias"] = normal(d, inner), normal(d)
        for bias in ("r_w_bias", "r_r_bias"):
            top = weights.get(f"{prefix}{bias}")
            weights[f"{name}dec_attn.{bias}"] = normal(heads, d_head) if top is None else top.clone()
    return weights


def bounds(config):
    return [0, *config["cutoffs"], config["vocab_size"]]


def tables(config):
    """Rows and width of every embedding table."""
    if config["div_val"] == 1:
        return [(config["vocab_size"], config["d_embed"])]
    edges = bounds(config)
    return [(edges[b + 1] - edges[b], config["d_embed"] // config["div_val"] ** b) for b in range(len(edges) - 1)]


def projects(config):
    return config["div_val"] > 1 or config["d_embed"] != config["d_model"]


def layer_norm(x, gain, bias, eps):
    centred = x - x.mean(-1, keepdim=True)
    return gain * centred / torch.sqrt((centred**2).mean(-1, keepdim=True) + eps) + bias


class Plain:
    """`original`: cluster rows in reverse and an empty start, as in the original repository, unlike Hugging Face.

    `dropped` and `weights_dropped` are factors in the places of dropout and of attention's own: what a mask that keeps
    everything would do there.
    """

    def __init__(self, weights, config, *, original=False, dropped=1.0, weights_dropped=1.0):
        self.config, self.original, self.dropped, self.weights_dropped = config, original, dropped, weights_dropped
        self.weights = {name.removeprefix("transformer."): tensor for name, tensor in weights.items()}

    def start(self, batch):
        rows = 0 if self.original else self.config["mem_len"]
        return [torch.zeros(batch, rows, self.config["d_model"], dtype=torch.float64)] * self.config["n_layer"]

    def embed(self, token):
        edges, weights = bounds(self.config), self.weights
        if self.config["div_val"] == 1:
            vector, band = weights["word_emb.emb_layers.0.weight"][token], 0
        else:
            band = sum(token >= edge for edge in edges[1:-1])
            vector = weights[f"word_emb.emb_layers.{band}.weight"][token - edges[band]]
        if projects(self.config):
            vector = weights[f"word_emb.emb_projs.{band}"] @ vector
        return vector * math.sqrt(self.config["d_model"])

    def segment(self, tokens, memories):
        """Log-probabilities, and the memories after the segment."""
        h = torch.stack([torch.stack([self.embed(int(token)) for token in row]) for row in tokens]) * self.dropped
        after = []
        for n in range(self.config["n_layer"]):
            whole = torch.cat([memories[n], h], dim=1)
            after.append(whole[:, max(0, whole.shape[1] - self.config["mem_len"]) :])
            h = self.layer(n, h, whole)
        return self.log_probs(h * self.dropped), after

    def layer(self, n, h, whole):
        weights, config = {k.removeprefix(f"layers.{n}."): v for k, v in self.weights.items()}, self.config
        norm = (
            weights["dec_attn.layer_norm.weight"],
            weights["dec_attn.layer_norm.bias"],
            config["layer_norm_epsilon"],
        )
        if config["pre_lnorm"]:
            h = h + self.attend(weights, layer_norm(h, *norm), layer_norm(whole, *norm))
        else:
            h = layer_norm(h + self.attend(weights, h, whole), *norm)
        norm = (weights["pos_ff.layer_norm.weight"], weights["pos_ff.layer_norm.bias"], config["layer_norm_epsilon"])
        fed = layer_norm(h, *norm) if config["pre_lnorm"] else h
        fed = torch.relu(fed @ weights["pos_ff.CoreNet.0.weight"].T + weights["pos_ff.CoreNet.0.bias"]) * self.dropped
        fed = (fed @ weights["pos_ff.CoreNet.3.weight"].T + weights["pos_ff.CoreNet.3.bias"]) * self.dropped
        return h + fed if config["pre_lnorm"] else layer_norm(h + fed, *norm)

    def attend(self, weights, x, whole):
        config = self.config
        heads, d = config["n_head"], config["d_head"]
        wq, wk, wv = weights["dec_attn.qkv_net.weight"].view(3, heads, d, -1)
        wr = weights["dec_attn.r_net.weight"].view(heads, d, -1)
        u = self.weights.get("r_w_bias", weights["dec_attn.r_w_bias"])
        v = self.weights.get("r_r_bias", weights["dec_attn.r_r_bias"])
        old = whole.shape[1] - x.shape[1]
        mixed = torch.zeros(len(x), x.shape[1], heads, d, dtype=torch.float64)
        for b in range(len(x)):
            for i in range(x.shape[1]):
                first = max(0, old + i - config["mem_len"] + 1) if config["same_length"] else 0
                for head in range(heads):
                    q = wq[head] @ x[b, i]
                    scores = []
                    for j in range(first, old + i + 1):
                        r = wr[head] @ self.wave(old + i - j)
                        scores.append(((q + u[head]) @ (wk[head] @ whole[b, j]) + (q + v[head]) @ r) / math.sqrt(d))
                    share = torch.softmax(torch.stack(scores), 0) * self.weights_dropped
                    values = whole[b, first : old + i + 1] @ wv[head].T
                    mixed[b, i, head] = share @ values
        return mixed.flatten(2) @ weights["dec_attn.o_net.weight"].T * self.dropped

    def wave(self, distance):
        if self.config["clamp_len"] > 0:
            distance = min(distance, self.config["clamp_len"])
        angles = distance * self.weights["pos_emb.inv_freq"]
        return torch.cat([angles.sin(), angles.cos()]) * self.dropped

    def log_probs(self, h):
        config, weights, edges = self.config, self.weights, bounds(self.config)

        def logits(band, weight, bias):
            hidden = h @ weights[f"crit.out_projs.{band}"] if projects(config) else h
            return hidden @ weight.T + bias

        def rows(band, part):
            if config["div_val"] > 1:
                return weights[f"crit.out_layers.{band}.{part}"]
            return weights[f"crit.out_layers.0.{part}"][edges[band] : edges[band + 1]]

        if not config["cutoffs"]:
            return torch.log_softmax(logits(0, rows(0, "weight"), rows(0, "bias")), -1)
        clusters = [weights["crit.cluster_weight"], weights["crit.cluster_bias"]]
        if self.original:
            clusters = [part.flip(0) for part in clusters]
        first = torch.log_softmax(
            logits(0, torch.cat([rows(0, "weight"), clusters[0]]), torch.cat([rows(0, "bias"), clusters[1]])), -1
        )
        parts = [first[..., : edges[1]]]
        for band in range(1, len(edges) - 1):
            within = torch.log_softmax(logits(band, rows(band, "weight"), rows(band, "bias")), -1)
            parts.append(first[..., edges[1] + band - 1 : edges[1] + band] + within)
        return torch.cat(parts, -1)
