"""Transformer-XL with absolute positions and with Shaw's, written out pair by pair: what these variants of the ablation
have to agree with. (Relative positions, from the published names: plain_transformer_xl.py.)
"""

import math

import torch


def norm(module, x):
    return torch.nn.functional.layer_norm(x, x.shape[-1:], module.weight, module.bias, module.eps)


def written_out(model, row):
    """Hidden vectors of one stream, pair by pair, for absolute positions and Shaw's; everything in one window."""
    config = model.config
    h = model.head.weight[row] * math.sqrt(config.width)
    if config.positions == "sinusoid":
        for t in range(len(row)):
            angles = t * model.frequencies
            h[t] = h[t] + torch.cat([angles.sin(), angles.cos()])
    for n, layer in enumerate(model.layers):
        attention = layer.attention
        if config.positions == "learned":
            h = h + model.places[n, : len(row)]
        q = attention.query(h).view(len(row), config.heads, config.d)
        k, v = attention.key_value(h).view(len(row), 2, config.heads, config.d).unbind(1)
        mixed = torch.zeros_like(q)
        for i in range(len(row)):
            for head in range(config.heads):
                first = max(0, i - config.window + 1)
                scores = []
                for j in range(first, i + 1):
                    score = q[i, head] @ k[j, head]
                    if config.positions == "shaw":
                        score = score + attention.content_bias[head] @ k[j, head]
                        score = score + q[i, head] @ attention.table[i - j, head] + attention.table_bias[i - j, head]
                    scores.append(score / math.sqrt(config.d))
                mixed[i, head] = torch.softmax(torch.stack(scores), 0) @ v[first : i + 1, head]
        h = norm(layer.attention_norm, h + attention.out(mixed.flatten(1)))
        h = norm(layer.feed_norm, h + layer.down(torch.relu(layer.up(h))))
    return h
