"""Hashed n-grams: against the formula written out with Python's whole numbers."""

import torch

from headcount.layers.ngrams import Ngrams, _numbers, before_the_first, remember

ORDERS, ROWS, WIDTH = (2, 3, 5), 11, 12
TOKENS = torch.tensor([[7, 0, 255, 7, 0, 255, 9], [1, 1, 1, 1, 1, 1, 1]])


def written_out(tokens, orders, rows):
    """Row numbers by the docstring's formula: nothing stands before the first symbol, and counts as -1."""
    numbers = [int(number) % 2**64 for number in _numbers(max(orders))]
    places = []
    for text in tokens.tolist():
        padded = [-1] * (max(orders) - 1) + text
        for t in range(max(orders) - 1, len(padded)):
            for index, order in enumerate(orders):
                total = sum(numbers[j] * (padded[t - j] + 1) for j in range(order)) % 2**64
                places.append((total >> 32) % 2**31 % rows + index * rows)
    return torch.tensor(places).view(*tokens.shape, len(orders))


def test_places_are_those_of_the_formula():
    layer = Ngrams(ORDERS, ROWS, WIDTH)
    assert layer.places(TOKENS, before_the_first(2, 4, TOKENS.device)).equal(written_out(TOKENS, ORDERS, ROWS))


def test_the_numbers_are_fixed_forever():
    """A trained table means nothing under other numbers."""
    numbers = [int(number) % 2**64 for number in _numbers(3)]
    assert numbers == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F5, 0x06C45D188009454F]
    assert all(number % 2 for number in numbers)


def test_vectors_of_all_orders_stand_side_by_side():
    layer = Ngrams(ORDERS, ROWS, WIDTH)
    recent = before_the_first(2, 4, TOKENS.device)
    vectors, places = layer(TOKENS, recent), layer.places(TOKENS, recent)
    assert vectors.shape == (2, 7, WIDTH)
    assert vectors[0, 3].equal(torch.cat([layer.table[row] for row in places[0, 3]]))


def test_equal_ngrams_have_equal_vectors_and_longer_ones_tell_them_apart():
    layer = Ngrams((2, 5), 1000, 4)
    vectors = layer(TOKENS, before_the_first(2, 4, TOKENS.device))[0]
    assert vectors[1, :2].equal(vectors[4, :2])  # "7 0" both times
    assert not vectors[1, 2:].equal(vectors[4, 2:])  # but not the five symbols


def test_what_is_remembered_makes_the_cut_invisible():
    layer = Ngrams(ORDERS, ROWS, WIDTH)
    recent = before_the_first(2, 4, TOKENS.device)
    whole, pieces = layer(TOKENS, recent), []
    for piece in TOKENS.split([1, 2, 3, 1], dim=1):
        pieces.append(layer(piece, recent))
        recent = remember(recent, piece)
    assert torch.cat(pieces, dim=1).equal(whole)
    assert recent.equal(TOKENS[:, -4:])


def test_rows_are_used_evenly():
    torch.manual_seed(0)
    tokens = torch.randint(0, 256, (1, 20_000))
    places = Ngrams((3,), 100, 4).places(tokens, before_the_first(1, 2, tokens.device))
    counts = torch.bincount(places.flatten(), minlength=100)
    assert counts.min() > 130 and counts.max() < 270  # 200 each, a deviation of 14
