"""The rows of published.toml against the papers' own tables, and parameters by formula against their sizes.

MERITY and the three of DAI are the tables as the papers' text has them (of Dai et al. the slides that show them),
copied from there and not from our file: a slip in one of the two shows. Al-Rfou et al.'s are those of a fact sheet that
was written from memory.
"""

import pytest

from headcount.use.published import rows

MERITY = """
Model | Heads | Valid | Test | Params
Large RHN (Zilly et al., 2016) | 0 | – | 1.27 | 46M
3 layer AWD-LSTM (Merity et al., 2018b) | 0 | – | 1.232 | 47M
T12 (12 layer) (Al-Rfou et al., 2019) | 24 | – | 1.11 | 44M
LSTM (Melis et al., 2019) | 0 | 1.182 | 1.195 | 48M
Mogrifier LSTM (Melis et al., 2019) | 0 | 1.135 | 1.146 | 48M
4 layer SHA-LSTM (h = 1024, no attention head) | 0 | 1.312 | 1.330 | 51M
4 layer SHA-LSTM (h = 1024, single attention head) | 1 | 1.100 | 1.076 | 52M
4 layer SHA-LSTM (h = 1024, attention head per layer) | 4 | 1.096 | 1.068 | 54M
T64 (64 layer) (Al-Rfou et al., 2019) | 128 | – | 1.06 | 235M
Transformer-XL (12 layer) (Dai et al., 2019) | 160 | – | 1.06 | 41M
Transformer-XL (18 layer) (Dai et al., 2019) | 160 | – | 1.03 | 88M
Adaptive Transformer (12 layer) (Sukhbaatar et al., 2019) | 96 | 1.04 | 1.02 | 39M
Sparse Transformer (30 layer) (Child et al., 2019) | 240 | – | 0.99 | 95M
"""
DAI_ENWIK8 = """
Model | Params | Test
Ha et al. (2016) – LN HyperNetworks | 27M | 1.34
Chung et al. (2016) – LN HM-LSTM | 35M | 1.32
Zilly et al. (2016) – Recurrent highway networks | 46M | 1.27
Mujika et al. (2017) – Large FS-LSTM-4 | 47M | 1.25
Krause et al. (2016) – Large mLSTM | 46M | 1.24
Knol (2017) – cmix v13 | - | 1.23
Al-Rfou et al. (2018) – 12-layer Transformer | 44M | 1.11
Ours – 12-layer Transformer-XL | 41M | 1.06
Al-Rfou et al. (2018) – 64-layer Transformer | 235M | 1.06
Ours – 18-layer Transformer-XL | 88M | 1.03
Ours – 24-layer Transformer-XL | 277M | 0.99
"""
DAI_TEXT8 = """
Model | Params | Test
Cooijmans et al. (2016) – BN-LSTM | - | 1.36
Chung et al. (2016) – LN HM-LSTM | 35M | 1.29
Zilly et al. (2016) – Recurrent highway networks | 45M | 1.27
Krause et al. (2016) – Large mLSTM | 45M | 1.27
Al-Rfou et al. (2018) – 12-layer Transformer | 44M | 1.18
Al-Rfou et al. (2018) – 64-layer Transformer | 235M | 1.13
Ours – 24-layer Transformer-XL | 277M | 1.08
"""
DAI_WIKITEXT = """
Model | Params | Valid | Test
Grave et al. (2016b) – LSTM | - | - | 48.7
Bai et al. (2018) – TCN | - | - | 45.2
Dauphin et al. (2016) – GCNN-8 | - | - | 44.9
Grave et al. (2016b) – LSTM + Neural cache | - | - | 40.8
Dauphin et al. (2016) – GCNN-14 | - | - | 37.2
Merity et al. (2018) – 4-layer QRNN | 151M | 32.0 | 33.0
Rae et al. (2018) – LSTM + Hebbian + Cache | - | 29.7 | 29.9
Ours – Transformer-XL Standard | 151M | 23.1 | 24.0
Baevski & Auli (2018) – adaptive input | 247M | 19.8 | 20.5
Ours – Transformer-XL Large | 257M | 17.7 | 18.3
"""
ALRFOU_ENWIK8 = """
Model | Test | Params
FS-LSTM | 1.25 | -
mLSTM | 1.24 | -
cmix v13 | 1.23 | -
mLSTM + dynamic evaluation | 1.08 | -
T12 | 1.11 | 44M / 41M
T64 | 1.06 | 235M / 219M
"""
ALRFOU_TEXT8 = """
Model | Valid | Test | Params
LSTM | - | 1.43 | -
BN-LSTM | - | 1.36 | -
HM-LSTM | - | 1.29 | -
RHN | - | 1.27 | -
mLSTM | - | 1.27 | -
mLSTM + dynamic evaluation | - | 1.19 | -
T12 | - | 1.18 | 44M / 41M
T64 | 1.06 | 1.13 | 235M / 219M
"""
PRINTED = {
    ("Merity 2019, table 1", "enwik8"): MERITY,
    ("Dai et al. 2019, table 2", "enwik8"): DAI_ENWIK8,
    ("Dai et al. 2019, table 3", "text8"): DAI_TEXT8,
    ("Dai et al. 2019, table 1", "wikitext-103"): DAI_WIKITEXT,
    ("Al-Rfou et al. 2018, its enwik8 table", "enwik8"): ALRFOU_ENWIK8,
    ("Al-Rfou et al. 2018, its text8 table", "text8"): ALRFOU_TEXT8,
}


def read(table: str) -> list[tuple[str | None, ...]]:
    """Name, heads, valid, test and parameters of every row."""
    header, *lines = [[cell.strip() for cell in line.split(" | ")] for line in table.strip().splitlines()]
    found = [dict(zip(header, cells, strict=True)) for cells in lines]
    columns = ("Model", "Heads", "Valid", "Test", "Params")
    return [tuple(None if row.get(c, "-") in "-–" else row[c] for c in columns) for row in found]


@pytest.mark.parametrize(("source", "corpus"), PRINTED, ids=str)
def test_every_row_stands_as_it_was_printed(source, corpus):
    ours = [
        (row.name, None if row.heads is None else str(row.heads), row.valid, row.test, row.parameters)
        for row in rows()
        if (row.source, row.corpus) == (source, corpus)
    ]
    assert ours == read(PRINTED[source, corpus])


def test_nothing_else_is_there():
    assert {(row.source, row.corpus) for row in rows()} == set(PRINTED)


def lstm(inputs: int, hidden: int, biases: int = 1) -> int:
    return 4 * hidden * (inputs + hidden + biases)


def head(hidden: int, vocabulary: int) -> int:
    return hidden * vocabulary + vocabulary


def block(width: int, inner: int, *, biases: bool) -> int:
    """A Transformer's: four products, two of the feed-forward part, two norms."""
    return 4 * (width * width + biases * width) + 2 * width * inner + inner + width + 4 * width


def rhn(vocabulary: int) -> int:
    return vocabulary**2 + 2 * vocabulary * 1500 + 10 * 2 * (1500 * 1500 + 1500) + head(1500, vocabulary)


def mult_lstm(vocabulary: int) -> int:
    rows = 2 * 2800 + 2 * 4 * 2800  # a gain for each, by weight normalisation
    weights = 400 * 2800 + 2800 * 2800 + 400 * 4 * 2800 + 2800 * 4 * 2800
    return vocabulary * 400 + weights + rows + 4 * 2800 + head(2800, vocabulary)


def hyper_lstm() -> int:
    main, small, embedded, vocabulary = 2048, 512, 64, 205
    cells = 4 * main * (vocabulary + main) + 4 * small * (vocabulary + main + small)
    scales = 12 * (small * embedded + embedded) + 12 * embedded * main + 4 * main
    return cells + scales + 10 * (main + small) + head(main, vocabulary)


def mogrifier() -> int:
    rounds = 6 * (2 * 1160 * 79 + 1160)
    return 2 * 205 * 1160 + 205 + 4 * (lstm(1160, 1160) + rounds)


def qrnn() -> int:
    layers = (2 * 400 + 1) * 7500 + 2 * (2500 + 1) * 7500 + (2500 + 1) * 1200
    return 267_735 * 400 + 267_735 + layers


def baevski() -> int:
    bands = 20_000 * 1024 + 40_000 * 256 + 207_735 * 64 + (1024 + 256 + 64) * 1024 + 2 * 1024
    return bands + 16 * block(1024, 4096, biases=True)


SIZES = {
    ("RHN", "enwik8"): rhn(205),
    ("RHN", "text8"): rhn(27),
    ("3 layer AWD-LSTM (Merity et al., 2018b)", "enwik8"): (
        lstm(400, 1840, 2) + lstm(1840, 1840, 2) + lstm(1840, 400, 2) + 205 * 400 + 205
    ),
    ("LSTM (Melis et al., 2019)", "enwik8"): 205 * 1218 + 4 * lstm(1218, 1218) + head(1218, 205),
    ("Mogrifier LSTM (Melis et al., 2019)", "enwik8"): mogrifier(),
    ("mLSTM", "enwik8"): mult_lstm(205),
    ("mLSTM", "text8"): mult_lstm(27),
    ("Ha et al. (2016) – LN HyperNetworks", "enwik8"): hyper_lstm(),
    ("BN-LSTM", "text8"): 4 * 2000 * (27 + 2000 + 3) + 4 * 2000 + head(2000, 27),
    ("Adaptive Transformer (12 layer) (Sukhbaatar et al., 2019)", "enwik8"): (
        12 * block(512, 2048, biases=False) + 205 * 512 + head(512, 205) + 64 * 8192 + 96
    ),
    ("Sparse Transformer (30 layer) (Child et al., 2019)", "enwik8"): (
        30 * block(512, 2048, biases=True) + 2 * 256 * 512 + (96 + 128) * 512 + 2 * 512
    ),
    ("Merity et al. (2018) – 4-layer QRNN", "wikitext-103"): qrnn(),
    ("Baevski & Auli (2018) – adaptive input", "wikitext-103"): baevski(),
}
NAMES = {"Large RHN (Zilly et al., 2016)": "RHN"}
"""Rows whose system has its sizes under another name."""
NOT_COUNTED_AGAIN = {"48.07M", "36.6M", "229M"}
"""FS-LSTM, HM-LSTM and GCNN-14: the fact sheet has the sums, but not every term of them."""


@pytest.mark.parametrize("row", [row for row in rows() if row.formula], ids=lambda row: f"{row.corpus}: {row.name}")
def test_parameters_by_formula_are_those_of_the_published_sizes(row):
    name = NAMES.get(row.name, row.name)
    same = {key: size for key, size in SIZES.items() if key[1] == row.corpus and key[0] in (name, _system(row))}
    if not same:
        assert row.formula in NOT_COUNTED_AGAIN
        return
    (size,) = same.values()
    digits = len(row.formula.rstrip("M").partition(".")[2])
    assert row.formula == f"{size / 1e6:.{digits}f}M"


def _system(row) -> str:
    """Short names of systems that stand in several tables."""
    short = {"Zilly": "RHN", "Krause": "mLSTM", "Cooijmans": "BN-LSTM", "mLSTM": "mLSTM"}
    return next((system for begin, system in short.items() if row.name.startswith(begin)), row.name)
