"""The SHA-RNN's equations, written out: the oracle that the fast model is held against.

Original names, time first, one stream position at a time where that is plainest. Nothing is folded, shared or fused:
gates multiply copies of the memory, scores are materialised, the mask is a loop.
"""

import torch


def layer_norm(x, weights, name, eps=1e-12):
    mean = x.mean(-1, keepdim=True)
    variance = ((x - mean) ** 2).mean(-1, keepdim=True)
    return (x - mean) / (variance + eps).sqrt() * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def linear(x, weights, name):
    return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def lstm(x, weights, name, h, c):
    outputs = []
    for x_t in x:
        gates = x_t @ weights[f"{name}.weight_ih_l0"].T + weights[f"{name}.bias_ih_l0"]
        gates = gates + h @ weights[f"{name}.weight_hh_l0"].T + weights[f"{name}.bias_hh_l0"]
        i, f, g, o = gates.chunk(4, dim=-1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
        outputs.append(h)
    return torch.stack(outputs), h, c


def attention(query_in, rows, old, weights, name, window, rule):
    """`rows` is the memory with the new rows at its end; the first `old` of them are from before this segment."""
    width = query_in.shape[-1]
    q = layer_norm(linear(query_in, weights, f"{name}.q"), weights, f"{name}.qln") * weights[f"{name}.qs"].sigmoid()
    k = rows * weights[f"{name}.ks"].sigmoid()
    candidate, gate = linear(weights[f"{name}.vs"].sigmoid(), weights, f"{name}.vq.l1").chunk(2, dim=-1)
    v = rows * (gate.sigmoid() * candidate.tanh())
    scores = torch.einsum("tbd,sbd->bts", q, k) / width**0.5
    for t in range(scores.shape[1]):
        for s in range(scores.shape[2]):
            too_old = rule == "exact" and s <= old + t - window
            if s > old + t or too_old:
                scores[:, t, s] = float("-inf")
    return torch.einsum("bts,sbd->tbd", scores.softmax(-1), v)


def boom(z, weights, name):
    u = linear(z, weights, f"{name}.linear1")
    u = u * torch.sigmoid(1.702 * u)
    return sum(u.split(z.shape[-1], dim=-1))


def forward(weights, tokens, state, window, rule="segment"):
    """B × T tokens to B × T × V log-probabilities; `state` maps block numbers to (h, c, memory rows), {} at first."""
    x = weights["encoder.weight"][tokens.T]
    length, batch, width = x.shape
    after = {}
    count = 1 + max(int(name.split(".")[1]) for name in weights if name.startswith("blocks."))
    for i in range(count):
        name = f"blocks.{i}"
        zeros = x.new_zeros(batch, width)
        h, c, memory = state.get(i, (zeros, zeros, x.new_zeros(0, batch, width)))
        r, h, c = lstm(layer_norm(x, weights, f"{name}.lnstart"), weights, f"{name}.rnn", h, c)
        if f"{name}.attn.q.weight" in weights:
            if rule == "segment":
                memory = memory[max(0, len(memory) - (window - length)) :]
            rows = torch.cat([memory, layer_norm(r, weights, f"{name}.lnmem")])
            query_in = layer_norm(r, weights, f"{name}.lnmid")
            looked_up = attention(query_in, rows, len(memory), weights, f"{name}.attn", window, rule)
            r = query_in + looked_up
            memory = rows[max(0, len(rows) - window) :]
        s = layer_norm(r, weights, f"{name}.lnff")
        z = layer_norm(r, weights, f"{name}.lnxff")
        x = s + boom(z, weights, f"{name}.ff")
        after[i] = (h, c, memory)
    logits = x @ weights["decoder.weight"].T + weights["decoder.bias"]
    return logits.log_softmax(-1).transpose(0, 1), after


def random_weights(width=12, blocks=3, attend=(1,), vocabulary=30, boom_multiple=3, seed=0, dead=True):
    """A state dict under the original names, everything random, dead tensors included."""
    draw = torch.Generator().manual_seed(seed)

    def random(*shape, scale=0.4):
        return torch.randn(*shape, generator=draw, dtype=torch.float64) * scale

    weights = {"encoder.weight": random(vocabulary, width), "decoder.bias": random(vocabulary)}
    weights["decoder.weight"] = weights["encoder.weight"]
    for i in range(blocks):
        norms = ["lnstart", "lnff", "lnxff"]
        norms += ["lnmid", "lnmem"] if i in attend or dead else []
        for norm in [f"{n}" for n in norms] + (["lnout"] if dead else []) + (["attn.qln"] if i in attend else []):
            weights[f"blocks.{i}.{norm}.weight"] = 1 + random(width)
            weights[f"blocks.{i}.{norm}.bias"] = random(width)
        for part in ("ih", "hh"):
            weights[f"blocks.{i}.rnn.weight_{part}_l0"] = random(4 * width, width)
            weights[f"blocks.{i}.rnn.bias_{part}_l0"] = random(4 * width)
        weights[f"blocks.{i}.ff.linear1.weight"] = random(boom_multiple * width, width)
        weights[f"blocks.{i}.ff.linear1.bias"] = random(boom_multiple * width)
        if i in attend:
            for gate in ("qs", "ks", "vs") + (("r_gate",) if dead else ()):
                weights[f"blocks.{i}.attn.{gate}"] = random(1, 1, width)
            if dead:
                weights[f"blocks.{i}.attn.qkvs"] = random(1, 3, width)
            weights[f"blocks.{i}.attn.q.weight"] = random(width, width)
            weights[f"blocks.{i}.attn.q.bias"] = random(width)
            weights[f"blocks.{i}.attn.vq.l1.weight"] = random(2 * width, width)
            weights[f"blocks.{i}.attn.vq.l1.bias"] = random(2 * width)
    if dead:
        weights["pos_emb"] = random(10, width)
    return weights
