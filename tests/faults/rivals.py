"""Recipes of the rivals that train in a moment: 12 steps, as the SHA-RNN's of `tests.conftest`."""

CHARACTER = """
seed = 3
[corpus]
path = "{text}"
[model]
kind = "char-transformer"
width = 16
layers = 3
inner = 32
context = 20
dropout = 0.1
[batches]
kind = "windows"
streams = 4
segment = 20
[optimiser]
kind = "sgd"
lr = 0.003
momentum = 0.9
[schedule]
kind = "constant"
[train]
steps = 12
evaluate_every = 6
save_every = 4
[evaluate]
protocol = "sliding-5"
limit = 300
"""
XL = """
seed = 3
[corpus]
path = "{text}"
[model]
kind = "transformer-xl"
width = 16
layers = 2
heads = 2
inner = 32
window = 20
dropout = 0.1
attention_dropout = 0.1
[batches]
streams = 4
segment = 9
[train]
steps = 12
evaluate_every = 6
save_every = 4
[evaluate]
protocol = "dai2019"
segment = 8
window = 30
clamp = 12
limit = 300
"""
