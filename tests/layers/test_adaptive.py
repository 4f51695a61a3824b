"""Adaptive input and softmax against the equations written out word by word."""

import math

import pytest
import safetensors.torch
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode

from headcount.layers.adaptive import AdaptiveSoftmax
from headcount.models.contract import count_parameters

VOCABULARY, WIDTH, CUTOFFS = 23, 8, (6, 10, 15)
ONE_TABLE = {}
ONE_TABLE_PROJECTED = {"embedding_width": 5, "tied_projections": (False, True, False, True)}
DIVIDED = {"division": 2}
DIVIDED_UNTIED = {"division": 2, "tied_projections": (False, True, True, False)}
DIVIDED_WIDER = {"division": 2, "embedding_width": 12, "tied_projections": (False,) * 4}
ALL = [ONE_TABLE, ONE_TABLE_PROJECTED, DIVIDED, DIVIDED_UNTIED, DIVIDED_WIDER]
every_form = pytest.mark.parametrize("form", ALL, ids=lambda form: "-".join(form) or "plain")


def make(form, cutoffs=CUTOFFS, dtype=torch.float64):
    """A head with weights that are far from 0, so that every part counts."""
    torch.manual_seed(1)
    head = AdaptiveSoftmax(VOCABULARY, WIDTH, cutoffs, **form).to(dtype)
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.normal_(std=0.7)
    return head


def batch(dtype=torch.float64):
    """Every word once, in no order, and a few twice: 4 × 7."""
    torch.manual_seed(2)
    tokens = torch.cat([torch.randperm(VOCABULARY), torch.randint(VOCABULARY, (5,))]).view(4, 7)
    return torch.randn(4, 7, WIDTH, dtype=dtype), tokens


class WrittenOut:
    """One word and one hidden vector at a time, by the names of the state dict."""

    def __init__(self, head, form, cutoffs=CUTOFFS):
        self.tensors = head.state_dict()
        self.bounds = (0, *cutoffs, VOCABULARY)
        self.divided = form.get("division", 1) > 1
        self.tied = form.get("tied_projections", (True,) * (len(cutoffs) + 1))

    def band(self, word):
        return next(b for b in range(len(self.bounds)) if self.bounds[b] <= word < self.bounds[b + 1])

    def row(self, name, word):
        """Of a table or bias, which is one for all bands or one for each."""
        band = self.band(word)
        if self.divided:
            return self.tensors[f"{name}.{band}"][word - self.bounds[band]]
        return self.tensors[f"{name}.0"][word]

    def projection(self, side, band):
        if side == "output" and not self.tied[band]:
            return self.tensors.get(f"output_projections.{band}")
        return self.tensors.get(f"input_projections.{band if self.divided else 0}")

    def embed(self, word):
        projection = self.projection("input", self.band(word))
        row = self.row("tables", word)
        return row if projection is None else torch.stack([(line * row).sum() for line in projection])

    def logit(self, hidden, band, weight, bias):
        projection = self.projection("output", band)
        if projection is not None:
            hidden = torch.stack([(projection[:, i] * hidden).sum() for i in range(projection.shape[1])])
        return float((weight * hidden).sum() + bias)

    def probabilities(self, hidden):
        def softmax(logits):
            total = sum(map(math.exp, logits))
            return [math.exp(logit) / total for logit in logits]

        def words(band):
            return [
                self.logit(hidden, band, self.row("tables", w), self.row("biases", w))
                for w in range(self.bounds[band], self.bounds[band + 1])
            ]

        tails = range(1, len(self.bounds) - 1)
        weights, biases = self.tensors["cluster_weight"], self.tensors["cluster_bias"]
        head = softmax([*words(0), *(self.logit(hidden, 0, weights[b - 1], biases[b - 1]) for b in tails)])
        found = head[: self.bounds[1]]
        for b in tails:
            found += [head[self.bounds[1] + b - 1] * p for p in softmax(words(b))]
        return torch.tensor(found, dtype=torch.float64)


@every_form
def test_it_is_the_equations(form):
    head, (hidden, tokens) = make(form), batch()
    plain = WrittenOut(head, form)
    expected = torch.stack([plain.probabilities(h) for h in hidden.flatten(0, 1)]).log()
    assert (head.log_probs(hidden).flatten(0, 1) - expected).abs().max() < 1e-12
    own = -expected.gather(1, tokens.flatten()[:, None]).view_as(tokens)
    assert (head.nll(hidden, tokens) - own).abs().max() < 1e-12  # in the order of the tokens
    vectors = torch.stack([plain.embed(word) for word in tokens.flatten().tolist()]).view(4, 7, WIDTH)
    assert (head.embed(tokens) - vectors).abs().max() < 1e-12


@every_form
def test_probabilities_sum_to_one(form):
    hidden, _ = batch()
    sums = make(form).log_probs(hidden).exp().sum(-1)
    assert sums.shape == (4, 7) and (sums - 1).abs().max() < 1e-12


@every_form
def test_every_parameter_learns_when_every_band_occurs(form):
    head, (hidden, tokens) = make(form), batch()
    (head.nll(hidden, tokens).sum() + head.embed(tokens).square().sum()).backward()
    for name, parameter in head.named_parameters():
        assert parameter.grad is not None and (parameter.grad != 0).any(), name


@every_form
@pytest.mark.parametrize("words", [range(6), range(6, 10), (0, 22), range(15, 23)])
def test_bands_may_be_absent(form, words):
    head, (hidden, _) = make(form), batch()
    tokens = torch.tensor([list(words)[i % len(words)] for i in range(28)]).view(4, 7)
    nats = head.nll(hidden, tokens)
    assert (nats + head.log_probs(hidden).gather(2, tokens[..., None])[..., 0]).abs().max() < 1e-12
    (nats.sum() + head.embed(tokens).sum()).backward()
    absent = sorted(set(range(VOCABULARY)) - set(words))
    plain = WrittenOut(head, form)
    plain.tensors = {name: parameter.grad for name, parameter in head.named_parameters()}
    present = {plain.band(word) for word in words} | {0}
    assert all(not plain.row("tables", word).any() for word in absent if plain.band(word) not in present)


def test_no_targets_at_all():
    head = make(DIVIDED_UNTIED)
    empty = torch.zeros(3, 0, dtype=torch.long)
    assert head.nll(torch.zeros(3, 0, WIDTH, dtype=torch.float64), empty).shape == (3, 0)
    assert head.embed(empty).shape == (3, 0, WIDTH)


@pytest.mark.parametrize("wrong", [-1, VOCABULARY])
@every_form
def test_what_is_no_word_is_refused(form, wrong):
    head, (hidden, tokens) = make(form), batch()
    tokens[1, 2] = wrong
    with pytest.raises(IndexError):
        head.nll(hidden, tokens)
    with pytest.raises(IndexError):
        head.embed(tokens)


def test_tied_projections_are_one_parameter():
    names = {name for name, _ in make(DIVIDED_UNTIED).named_parameters() if "projections" in name}
    assert names == {f"input_projections.{b}" for b in range(4)} | {"output_projections.0", "output_projections.3"}
    head, (hidden, tokens) = make(DIVIDED_UNTIED), batch()
    vectors, before = head.embed(tokens), head.log_probs(hidden)
    with torch.no_grad():
        head.input_projections[0].zero_()  # untied: only the input notices
        head.input_projections[1].zero_()  # tied: both do
    assert not head.embed(tokens)[tokens < 10].any() and head.embed(tokens)[tokens >= 10].equal(vectors[tokens >= 10])
    after = head.log_probs(hidden)
    assert after[..., :6].equal(before[..., :6]) and after[..., 10:].equal(before[..., 10:])
    assert (after[..., 6:10] - before[..., 6:10]).abs().min() > 0


@every_form
def test_gradients_are_those_of_differences(form):
    torch.manual_seed(3)
    head = AdaptiveSoftmax(7, 4, (2, 5), **{**form, **({"tied_projections": (False, True, False)} if form else {})})
    head.double()
    hidden = torch.randn(1, 4, 4, dtype=torch.float64, requires_grad=True)
    tokens = torch.tensor([[6, 0, 3, 1]])
    names, values = zip(*head.named_parameters(), strict=True)

    def run(hidden, *values):
        given = dict(zip(names, values, strict=True))
        return torch.func.functional_call(head, given, (hidden, tokens))

    head.forward = lambda hidden, tokens: head.nll(hidden, tokens) + head.embed(tokens).sum(-1)
    assert torch.autograd.gradcheck(run, (hidden, *values))


class Largest(TorchDispatchMode):
    """The most elements that any tensor had which was made inside."""

    def __init__(self):
        super().__init__()
        self.elements = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        self.elements = max(self.elements, *(t.numel() for t in tree_leaves(made) if isinstance(t, torch.Tensor)), 0)
        return made


@pytest.mark.parametrize("division", [1, 2])
def test_nothing_is_as_large_as_all_words_for_all_rows(division):
    vocabulary, cutoffs, rows = 4_000, (100, 1_000), 512
    head = AdaptiveSoftmax(vocabulary, 8, cutoffs, division=division)
    torch.manual_seed(4)
    tokens = torch.randint(100, (4, rows // 4))
    tokens[0, :10], tokens[1, 5:8] = 500, 3_000
    hidden = torch.randn(4, rows // 4, 8, requires_grad=True)
    with Largest() as largest:
        head.nll(hidden, tokens).sum().backward()
    assert rows * 102 <= largest.elements <= rows * 103  # the head; a tail has few rows
    with Largest() as largest:
        head.log_probs(hidden)
    assert largest.elements == rows * vocabulary


def test_half_precision_is_scored_in_single():
    head, (hidden, tokens) = make(DIVIDED_UNTIED, dtype=torch.float32), batch(torch.float32)
    exact = head.nll(hidden, tokens)
    nats = head.bfloat16().nll(hidden.bfloat16(), tokens)
    assert nats.dtype == torch.float32 and (nats - exact).abs().max() < 0.3
    assert head.log_probs(hidden.bfloat16()).dtype == torch.float32


@every_form
def test_it_survives_a_file(form, tmp_path):
    head, (hidden, tokens) = make(form), batch()
    safetensors.torch.save_file(head.state_dict(), tmp_path / "head.safetensors")
    other = AdaptiveSoftmax(VOCABULARY, WIDTH, CUTOFFS, **form).double()
    other.load_state_dict(safetensors.torch.load_file(tmp_path / "head.safetensors"))
    assert other.nll(hidden, tokens).equal(head.nll(hidden, tokens)) and other.embed(tokens).equal(head.embed(tokens))


def test_weights_are_drawn_as_published():
    torch.manual_seed(5)
    head = AdaptiveSoftmax(4_000, 64, (500, 1_000), division=2, tied_projections=(False, True, True))
    assert all(0.018 < table.std() < 0.022 for table in (*head.tables, head.cluster_weight))
    projections = (*head.input_projections, *head.output_projections.values())
    assert len(projections) == 4 and all(0.009 < p.std() < 0.011 for p in projections)
    assert not any(bias.any() for bias in (*head.biases, head.cluster_bias))


def layers_of_transformer_xl(layers, width, heads, size, inner):
    """Parameters of the stack, shared u and v included."""
    return layers * (5 * width * heads * size + 2 * width * inner + inner + 5 * width) + 2 * heads * size


def test_the_published_sizes():
    """WikiText-103, standard and large: whole models, as counted in the published code."""
    cutoffs = (20_000, 40_000, 200_000)
    with torch.device("meta"):
        standard = AdaptiveSoftmax(267_735, 410, cutoffs)
        large = AdaptiveSoftmax(267_735, 1_024, cutoffs, division=4, tied_projections=(False, True, True, True))
    assert count_parameters(standard) == 267_735 * 410 + 267_735 + 3 * 411
    assert count_parameters(standard) + layers_of_transformer_xl(16, 410, 10, 41, 2_100) == 151_107_538
    assert [table.shape[1] for table in large.tables] == [1_024, 256, 64, 16]
    assert count_parameters(large) + layers_of_transformer_xl(18, 1_024, 16, 64, 4_096) == 285_170_506


@pytest.mark.parametrize(
    ("cutoffs", "form", "said"),
    [
        ((6, 6), {}, "cutoffs"),
        ((0, 6), {}, "cutoffs"),
        ((6, VOCABULARY), {}, "cutoffs"),
        ((6, 10), {"tied_projections": (True,)}, "3 bands"),
        ((6, 10), {"division": 4}, "nothing is left"),
        ((6, 10), {"division": 0}, "nothing is left"),
    ],
)
def test_what_cannot_be_is_refused(cutoffs, form, said):
    with pytest.raises(ValueError, match=said):
        AdaptiveSoftmax(VOCABULARY, WIDTH, cutoffs, **form)


def test_without_cutoffs_it_is_a_softmax_with_a_projection():
    torch.manual_seed(0)
    head = AdaptiveSoftmax(VOCABULARY, WIDTH, (), embedding_width=3).double()
    hidden = torch.randn(2, 4, WIDTH, dtype=torch.float64)
    logits = hidden @ head.input_projections[0] @ head.tables[0].T + head.biases[0]
    assert torch.allclose(head.log_probs(hidden), torch.log_softmax(logits, -1), atol=1e-12)
    assert not hasattr(head, "cluster_weight")


@every_form
@pytest.mark.parametrize("cutoffs", [(), CUTOFFS], ids=str)
def test_flops_of_a_token_of_the_first_band_are_those_that_torch_counts(form, cutoffs):
    if "tied_projections" in form:
        form = {**form, "tied_projections": form["tied_projections"][: len(cutoffs) + 1]}
    head, tokens = make(form, cutoffs), torch.randint(CUTOFFS[0], (3, 4))
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        head.nll(head.embed(tokens), tokens)
    assert counter.get_total_flops() == head.flops * tokens.numel()
