# SPDX-License-Identifier: Apache-2.0
"""Vocabularies, and texts between str and bytes."""

from collections import Counter
from enum import IntEnum

import numpy as np

from undertow._core import data as _data
from undertow.dataset import _arguments as _args

_t = _data.text


class NormalizeForm(IntEnum):
    """Unicode's normalization forms."""

    NONE, NFC, NFKC, NFD, NFKD = 0, 1, 2, 3, 4


def to_str(array, encoding="utf8"):
    """An array of bytes as an array of str."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"to_str: expected a NumPy array, got {type(array).__name__}")
    return np.char.decode(array, encoding) if array.dtype.kind == "S" else array.astype(np.str_)


def to_bytes(array, encoding="utf8"):
    """An array of str as an array of bytes."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"to_bytes: expected a NumPy array, got {type(array).__name__}")
    return np.char.encode(array, encoding)


def strings_of(op, value):
    """A list of str from a str, an array or a list of them."""
    array = np.asarray(value)
    if array.dtype.kind == "S":
        array = np.char.decode(array, "utf8")
    if array.dtype.kind != "U":
        raise TypeError(f"{op}: expected text, got {array.dtype} of shape {array.shape}")
    return [str(s) for s in array.ravel()]


def text_of(op, value):
    """One str."""
    strings = strings_of(op, value)
    if len(strings) != 1 or np.ndim(value) > 1:
        raise RuntimeError(f"{op}: expected one text, got shape {np.shape(value)}")
    return strings[0]


def words_of(op, name, value):
    """A list of str from a list or tuple of str."""
    if not isinstance(value, (list, tuple)) or not all(isinstance(w, str) for w in value):
        raise TypeError(f"{op}: {name} must be a list of str, got {value!r}")
    return list(value)


class Vocab:
    """Words and their numbers, from 0."""

    def __init__(self, handle=None):
        self._handle = handle

    @property
    def handle(self):
        if self._handle is None:
            raise RuntimeError("Vocab: make one by from_list, from_dict, from_file or from_dataset")
        return self._handle

    @classmethod
    def from_list(cls, word_list, special_tokens=None, special_first=True):
        """The words in their order, with the special tokens first or last."""
        words = words_of("Vocab.from_list", "word_list", word_list)
        special = [] if special_tokens is None else words_of("Vocab.from_list", "special_tokens", special_tokens)
        for token in special:
            if token in words:
                raise ValueError(f"Vocab: special_tokens and the words both hold {token!r}")
        first = _args.flag("Vocab", "special_first", special_first)
        return cls(_t.Vocab(special + words if first else words + special))

    @classmethod
    def from_dict(cls, word_dict):
        """The words with these numbers, which must not be negative."""
        if not isinstance(word_dict, dict) or not all(isinstance(w, str) for w in word_dict):
            raise TypeError(f"Vocab.from_dict: word_dict must be a dict from str to int, got {word_dict!r}")
        return cls(
            _t.Vocab({w: _args.integer("Vocab.from_dict", f"the number of {w!r}", n) for w, n in word_dict.items()})
        )

    @classmethod
    def from_file(cls, file_path, delimiter="", vocab_size=None, special_tokens=None, special_first=True):
        """A word a line, up to the delimiter where one is given; the first vocab_size of them."""
        if vocab_size is not None and _args.integer("Vocab.from_file", "vocab_size", vocab_size) < 1:
            raise ValueError(f"Vocab.from_file: vocab_size must be positive, got {vocab_size}")
        with open(file_path, encoding="utf8") as f:
            words = [line.rstrip("\r\n") for line in f]
        if delimiter:
            words = [w.split(delimiter)[0] for w in words]
        return cls.from_list(words[:vocab_size], special_tokens, special_first)

    @classmethod
    def from_dataset(cls, dataset, columns=None, freq_range=None, top_k=None, special_tokens=None, special_first=True):
        """The words of a dataset's columns, the most frequent first and equals by name.

        freq_range: (min, max) of the counts, None where open; top_k: only so many.
        """
        names = [columns] if isinstance(columns, str) else columns or dataset.get_col_names()
        low, high = (None, None) if freq_range is None else freq_range
        counts = Counter()
        for row in dataset.create_dict_iterator(num_epochs=1, output_numpy=True):
            for name in names:
                counts.update(strings_of("Vocab.from_dataset", row[name]))
        words = [w for w, n in counts.items() if (low is None or n >= low) and (high is None or n <= high)]
        words.sort(key=lambda w: (-counts[w], w))
        return cls.from_list(words[:top_k], special_tokens, special_first)

    def vocab(self):
        """A dict from word to number."""
        return self.handle.words()

    def tokens_to_ids(self, tokens):
        """The number of a word, or of each of a list; -1 for one that is not there."""
        if isinstance(tokens, str):
            return self._find(tokens)
        return [self._find(t) for t in strings_of("Vocab.tokens_to_ids", tokens)]

    def ids_to_tokens(self, ids):
        """The word of a number, or of each of a list; "" for one that is not there."""
        if isinstance(ids, (list, tuple, np.ndarray)):
            return [self.handle.word(int(i)) or "" for i in ids]
        return self.handle.word(_args.integer("Vocab.ids_to_tokens", "ids", ids)) or ""

    def _find(self, word):
        number = self.handle.find(word)
        return -1 if number is None else number
