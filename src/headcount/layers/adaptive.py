"""Adaptive input and softmax: rare words get fewer numbers and are looked at only where they occur.

Grave et al. 2017 ("Efficient softmax approximation for GPUs") for the output, Baevski and Auli 2019 ("Adaptive input
representations") for the input, with tables shared by both as in Transformer-XL (Dai et al. 2019). Words are numbered
by frequency, the most frequent first, and cut into bands 0 … K at the cutoffs c₁ < … < c_K < V:

    band 0 = [0, c₁)      band b = [c_b, c_{b+1})      band K = [c_K, V)

Band b has a table E_b of embedding width d_b, a bias β_b, and projections D × d_b into the model (I_b) and out of it
(O_b), where there are any. For a word w, which is row i of band b, and a hidden vector h:

    embedding   e = I_b·E_b[i]
    head        p₀ = softmax([E₀; C]·O₀ᵀ·h + [β₀; γ])      band 0's words, then a row of C for every tail band
    b = 0       p(w) = p₀[i]
    b > 0       p(w) = p₀[c₁ + b - 1] · softmax(E_b·O_bᵀ·h + β_b)[i]

With a division of N > 1 the embedding width falls by that factor from band to band, d_b = ⌊d₀ / N^b⌋, and every band
has a projection, also band 0. With a division of 1 there is one table V × d₀ of which the bands are slices, one
projection into the model and one a band out of it, both only where d₀ ≠ D.

The parameters, and what the published PyTorch code calls them (its tied tensors appear there under both names):

    tables.{b}               V_b × d_b     word_emb.emb_layers.{b}.weight = crit.out_layers.{b}.weight
    biases.{b}               V_b           crit.out_layers.{b}.bias
    input_projections.{b}    D × d_b       word_emb.emb_projs.{b}
    output_projections.{b}   D × d_b       crit.out_projs.{b}; only of bands that are not tied
    cluster_weight           K × d₀        crit.cluster_weight, its rows in reverse order
    cluster_bias             K             crit.cluster_bias, in reverse order

The TensorFlow code and Hugging Face have cluster rows in our order. V_b is a band's number of words; with a division of
1 there is only b = 0 of tables, biases and input projections, with V rows.
"""

from __future__ import annotations

from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from headcount.layers.heads import TiedSoftmax


def require_bands(cutoffs: tuple[int, ...], vocabulary: int) -> None:
    """Refuse cutoffs that do not rise between 0 and the vocabulary."""
    if any(low >= high for low, high in pairwise((0, *cutoffs, vocabulary))):
        raise ValueError(f"cutoffs = {list(cutoffs)} must rise from above 0 to below {vocabulary}")


def tied_softmax(
    vocabulary: int,
    width: int,
    cutoffs: tuple[int, ...],
    *,
    division: int = 1,
    embedding_width: int | None = None,
    tied_projections: tuple[bool, ...] | None = None,
) -> nn.Module:
    """A head that also embeds: plain, or in bands, or with vectors of another width than the stream."""
    if not cutoffs and division == 1 and embedding_width in (None, width):
        return TiedSoftmax(vocabulary, width)
    return AdaptiveSoftmax(
        vocabulary,
        width,
        cutoffs,
        division=division,
        embedding_width=embedding_width,
        tied_projections=tied_projections,
    )


class AdaptiveSoftmax(nn.Module):
    """A head over words in bands. Probabilities are computed in float32 at least, whatever the rest runs in."""

    def __init__(
        self,
        vocabulary: int,
        width: int,
        cutoffs: tuple[int, ...],
        *,
        division: int = 1,
        embedding_width: int | None = None,
        tied_projections: tuple[bool, ...] | None = None,
    ) -> None:
        """`tied_projections`: for each band, whether it goes out by the projection it came in by; all do by default."""
        super().__init__()
        require_bands(cutoffs, vocabulary)
        bounds = (0, *cutoffs, vocabulary)
        self.bounds, self.width, self.division = bounds, width, division
        self.sizes = tuple(high - low for low, high in pairwise(bounds))
        bands, first = len(self.sizes), width if embedding_width is None else embedding_width
        self.tied = (True,) * bands if tied_projections is None else tied_projections
        if len(self.tied) != bands:
            raise ValueError(f"tied_projections = {list(self.tied)}: there are {bands} bands")
        if division < 1 or first // division ** (bands - 1) < 1:
            raise ValueError(f"division = {division}: nothing is left of an embedding of {first} in band {bands - 1}")
        widths = [first // division**b for b in range(bands)]
        self.projects = division > 1 or first != width
        shapes = list(zip(self.sizes, widths, strict=True)) if division > 1 else [(vocabulary, first)]
        self.tables = nn.ParameterList(torch.empty(shape) for shape in shapes)
        self.biases = nn.ParameterList(torch.empty(rows) for rows, _ in shapes)
        self.input_projections = nn.ParameterList(torch.empty(width, d) for _, d in shapes if self.projects)
        self.output_projections = nn.ParameterDict(
            {str(b): torch.empty(width, widths[b]) for b in range(bands) if self.projects and not self.tied[b]}
        )
        if cutoffs:
            self.cluster_weight = nn.Parameter(torch.empty(bands - 1, first))
            self.cluster_bias = nn.Parameter(torch.empty(bands - 1))
        self.initialise()

    def initialise(self) -> None:
        """Tables and cluster rows N(0, 0.02), projections N(0, 0.01), biases 0."""
        for name, parameter in self.named_parameters():
            if "bias" in name:
                nn.init.zeros_(parameter)
            else:
                nn.init.normal_(parameter, std=0.01 if "projections" in name else 0.02)

    @property
    def flops(self) -> int:
        """Forward, per token of the first band, which most are in: its logits, and the projections in and out."""
        first = int(self.tables[0].shape[1])
        return 2 * first * (self.sizes[0] + len(self.sizes) - 1) + 4 * self.width * first * self.projects

    def embed(self, tokens: Tensor) -> Tensor:
        """B × T tokens to B × T × D vectors."""
        if self.division == 1:
            vectors = F.embedding(tokens, self.tables[0])
            return F.linear(vectors, self.input_projections[0]) if self.projects else vectors
        flat = tokens.flatten()
        places = self._places(self._band_of(flat))
        parts = [
            F.linear(F.embedding(flat[rows] - self.bounds[band], self.tables[band]), self.input_projections[band])
            for band, rows in enumerate(places)
        ]
        in_order = torch.cat(parts).index_select(0, torch.cat(places).argsort())
        return in_order.view(*tokens.shape, self.width)

    def nll(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """Nats of every target, in the targets' order: B × T × D and B × T to B × T.

        A tail band is computed only for the rows whose target is in it. A band that does not occur gets zero gradients.
        """
        rows, flat = hidden.flatten(0, 1), targets.flatten()
        weights, biases = self._bands()
        band = self._band_of(flat)
        shortlist = self.bounds[1]
        nats = F.cross_entropy(
            self._head(rows, weights[0], biases[0]),
            torch.where(band == 0, flat, shortlist - 1 + band),
            reduction="none",
        )
        for tail, own in enumerate(self._places(band)[1:], start=1):
            logits = self._logits(rows[own], tail, weights[tail], biases[tail])
            within = F.cross_entropy(logits, flat[own] - self.bounds[tail], reduction="none")
            nats = nats.index_add(0, own, within)
        return nats.view_as(targets)

    def log_probs(self, hidden: Tensor) -> Tensor:
        """Nats of every word, negative: B × T × D to B × T × V."""
        weights, biases = self._bands()
        shortlist = self.bounds[1]
        head = F.log_softmax(self._head(hidden, weights[0], biases[0]), dim=-1)
        parts = [head[..., :shortlist]]
        for tail in range(1, len(self.sizes)):
            within = F.log_softmax(self._logits(hidden, tail, weights[tail], biases[tail]), dim=-1)
            parts.append(head[..., shortlist + tail - 1, None] + within)
        return torch.cat(parts, dim=-1)

    def _bands(self) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """Table and bias of every band. One split of one table has one gradient; a slice a band would have one each."""
        if self.division > 1:
            return tuple(self.tables), tuple(self.biases)
        return self.tables[0].split(self.sizes), self.biases[0].split(self.sizes)

    def _band_of(self, flat: Tensor) -> Tensor:
        """Which band every word is in."""
        return sum((flat >= cutoff for cutoff in self.bounds[1:-1]), start=torch.zeros_like(flat))

    def _places(self, band: Tensor) -> list[Tensor]:
        """Where the words of each band stand."""
        return [(band == b).nonzero()[:, 0] for b in range(len(self.sizes))]

    def _head(self, hidden: Tensor, words: Tensor, bias: Tensor) -> Tensor:
        """Logits of band 0's words and of the tail bands."""
        if len(self.sizes) > 1:
            words, bias = torch.cat([words, self.cluster_weight]), torch.cat([bias, self.cluster_bias])
        return self._logits(hidden, 0, words, bias)

    def _logits(self, hidden: Tensor, band: int, weight: Tensor, bias: Tensor) -> Tensor:
        if self.projects:
            hidden = hidden @ self._output_projection(band)
        logits = F.linear(hidden, weight, bias)
        return logits if logits.dtype == torch.float64 else logits.float()

    def _output_projection(self, band: int) -> Tensor:
        tied: Tensor = self.input_projections[band if self.division > 1 else 0]
        return tied if self.tied[band] else self.output_projections[str(band)]
