# SPDX-License-Identifier: Apache-2.0
"""Operations on texts."""

import numpy as np

from undertow._core import data as _data
from undertow._core import dtype_of
from undertow.dataset import _arguments as _args
from undertow.dataset._operation import TensorOperation
from undertow.dataset.text.utils import NormalizeForm, Vocab, strings_of, text_of, words_of

_t = _data.text


class _Text(TensorOperation):
    """An operation on texts, called by map() as a Python function."""

    def __call__(self, text):
        raise NotImplementedError


class _EachText(_Text):
    """One that turns every text of an array into another."""

    def __call__(self, text):
        name = type(self).__name__
        shape = np.shape(text)
        return np.array([self._one(s) for s in strings_of(name, text)], np.str_).reshape(shape)


class _Tokenizer(_Text):
    """One text to tokens; with_offsets adds where each starts and ends in its bytes (uint32)."""

    def _offsets(self, with_offsets):
        self.with_offsets = _args.flag(type(self).__name__, "with_offsets", with_offsets)

    def __call__(self, text):
        words, starts, limits = self._tokens(text_of(type(self).__name__, text))
        words = np.array(words, np.str_)
        if not self.with_offsets:
            return words
        return words, np.array(starts, np.uint32), np.array(limits, np.uint32)


def _vocab(name, vocab):
    if not isinstance(vocab, Vocab):
        raise TypeError(f"{name}: vocab must be a Vocab, got {vocab!r}")
    return vocab


def _string(name, argument, value):
    if not isinstance(value, str):
        raise TypeError(f"{name}: {argument} must be str, got {value!r}")
    return value


class WhitespaceTokenizer(_Tokenizer):
    """The parts between white space."""

    def __init__(self, with_offsets=False):
        self._offsets(with_offsets)

    def _tokens(self, text):
        return _t.whitespace_tokens(text)


class UnicodeCharTokenizer(_Tokenizer):
    """Single characters."""

    def __init__(self, with_offsets=False):
        self._offsets(with_offsets)

    def _tokens(self, text):
        return _t.character_tokens(text)


class UnicodeScriptTokenizer(_Tokenizer):
    """Runs of one script; runs of white space are left out unless keep_whitespace."""

    def __init__(self, keep_whitespace=False, with_offsets=False):
        self.keep = _args.flag("UnicodeScriptTokenizer", "keep_whitespace", keep_whitespace)
        self._offsets(with_offsets)

    def _tokens(self, text):
        return _t.script_tokens(text, self.keep)


class RegexTokenizer(_Tokenizer):
    """The parts between matches of delim_pattern; a match that keep_delim_pattern matches too is a token."""

    def __init__(self, delim_pattern, keep_delim_pattern="", with_offsets=False):
        self.delimiter = _string("RegexTokenizer", "delim_pattern", delim_pattern)
        self.keep = _string("RegexTokenizer", "keep_delim_pattern", keep_delim_pattern)
        self._offsets(with_offsets)
        _t.regex_tokens("", self.delimiter, self.keep)  # checks both

    def _tokens(self, text):
        return _t.regex_tokens(text, self.delimiter, self.keep)


class BasicTokenizer(_Tokenizer):
    """BERT's first step: at white space, around punctuation and Chinese characters; control characters go.

    lower_case folds case and drops accents. preserve_unused_token: [CLS], [SEP], [UNK], [PAD], [MASK] and [unused1]
    stay whole. Offsets are those in the normalized text.
    """

    def __init__(
        self,
        lower_case=False,
        keep_whitespace=False,
        normalization_form=NormalizeForm.NONE,
        preserve_unused_token=True,
        with_offsets=False,
    ):
        name = type(self).__name__
        self.options = (
            _args.flag(name, "lower_case", lower_case),
            _args.flag(name, "keep_whitespace", keep_whitespace),
            int(_args.member(name, "normalization_form", normalization_form, NormalizeForm)),
            _args.flag(name, "preserve_unused_token", preserve_unused_token),
        )
        self._offsets(with_offsets)

    def _tokens(self, text):
        return _t.basic_tokens(text, *self.options)


def _pieces(name, vocab, suffix_indicator, max_bytes_per_token, unknown_token):
    most = _args.integer(name, "max_bytes_per_token", max_bytes_per_token)
    if most < 0:
        raise ValueError(f"{name}: max_bytes_per_token must not be negative, got {most}")
    suffix = _string(name, "suffix_indicator", suffix_indicator)
    return _vocab(name, vocab).handle, suffix, most, _string(name, "unknown_token", unknown_token)


class WordpieceTokenizer(_Text):
    """Each word as the longest pieces that the vocabulary has; unknown_token for a word that has none."""

    def __init__(
        self, vocab, suffix_indicator="##", max_bytes_per_token=100, unknown_token="[UNK]", with_offsets=False
    ):
        name = "WordpieceTokenizer"
        self.pieces = _pieces(name, vocab, suffix_indicator, max_bytes_per_token, unknown_token)
        self.with_offsets = _args.flag(name, "with_offsets", with_offsets)

    def __call__(self, words):
        words, starts, limits = _t.wordpieces(strings_of("WordpieceTokenizer", words), *self.pieces)
        words = np.array(words, np.str_)
        return (words, np.array(starts, np.uint32), np.array(limits, np.uint32)) if self.with_offsets else words


class BertTokenizer(BasicTokenizer):
    """BasicTokenizer, then WordpieceTokenizer."""

    def __init__(
        self,
        vocab,
        suffix_indicator="##",
        max_bytes_per_token=100,
        unknown_token="[UNK]",
        lower_case=False,
        keep_whitespace=False,
        normalization_form=NormalizeForm.NONE,
        preserve_unused_token=True,
        with_offsets=False,
    ):
        super().__init__(lower_case, keep_whitespace, normalization_form, preserve_unused_token, with_offsets)
        self.pieces = _pieces("BertTokenizer", vocab, suffix_indicator, max_bytes_per_token, unknown_token)

    def _tokens(self, text):
        return _t.bert_tokens(text, *self.options, *self.pieces)


class CaseFold(_EachText):
    """Lower case, by Unicode's case folding."""

    def _one(self, text):
        return _t.fold_case(text)


class NormalizeUTF8(_EachText):
    """A Unicode normalization form."""

    def __init__(self, normalize_form=NormalizeForm.NFKC):
        self.form = int(_args.member("NormalizeUTF8", "normalize_form", normalize_form, NormalizeForm))

    def _one(self, text):
        return _t.normalize(text, self.form)


class RegexReplace(_EachText):
    """Replaces matches of `pattern` (the first, or all), with $1 for a group."""

    def __init__(self, pattern, replace, replace_all=True):
        self.pattern = _string("RegexReplace", "pattern", pattern)
        self.replace = _string("RegexReplace", "replace", replace)
        self.all = _args.flag("RegexReplace", "replace_all", replace_all)
        self._one("")

    def _one(self, text):
        return _t.regex_replace(text, self.pattern, self.replace, self.all)


class Lookup(_Text):
    """The numbers of words in a vocabulary; unknown_token's for one that is not there, else an error."""

    def __init__(self, vocab, unknown_token=None, data_type="int32"):
        self.vocab = _vocab("Lookup", vocab)
        self.dtype = np.dtype(str(dtype_of(data_type)).lower())
        self.unknown = None
        if unknown_token is not None:
            self.unknown = self.vocab.handle.find(_string("Lookup", "unknown_token", unknown_token))
            if self.unknown is None:
                raise ValueError(f"Lookup: unknown_token {unknown_token!r} is not in the vocabulary")

    def __call__(self, words):
        numbers = []
        for word in strings_of("Lookup", words):
            number = self.vocab.handle.find(word)
            if number is None:
                number = self.unknown
            if number is None:
                raise RuntimeError(f"Lookup: {word!r} is not in the vocabulary, and there is no unknown_token")
            numbers.append(number)
        return np.array(numbers, self.dtype).reshape(np.shape(words))


class Ngram(_Text):
    """Runs of n words (one n, or a list) joined by the separator, with pads (word, width) at the ends."""

    def __init__(self, n, left_pad=("", 0), right_pad=("", 0), separator=" "):
        self.n = _args.one_or("Ngram", "n", n, (), _args.integer)
        self.pads = [self._pad("left_pad", left_pad), self._pad("right_pad", right_pad)]
        self.separator = _string("Ngram", "separator", separator)
        _t.ngrams([], self.n, *self.pads, self.separator)  # checks them

    @staticmethod
    def _pad(name, value):
        if not isinstance(value, tuple) or len(value) != 2:
            raise TypeError(f"Ngram: {name} must be (str, int), got {value!r}")
        return _string("Ngram", name, value[0]), _args.integer("Ngram", name, value[1])

    def __call__(self, words):
        return np.array(_t.ngrams(strings_of("Ngram", words), self.n, *self.pads, self.separator), np.str_)


class SlidingWindow(_Text):
    """Windows of `width` along an axis, each a row of a new dimension there."""

    def __init__(self, width, axis=0):
        self.width, self.axis = (
            _args.integer("SlidingWindow", "width", width),
            _args.integer("SlidingWindow", "axis", axis),
        )
        if self.width < 1:
            raise ValueError(f"SlidingWindow: width must be positive, got {width}")

    def __call__(self, array):
        array = np.asarray(array)
        if not -array.ndim <= self.axis < array.ndim:
            raise RuntimeError(f"SlidingWindow: axis {self.axis} of an array of shape {array.shape}")
        axis = self.axis % array.ndim
        if array.shape[axis] < self.width:
            return np.zeros(array.shape[:axis] + (0, self.width) + array.shape[axis + 1 :], array.dtype)
        windows = np.lib.stride_tricks.sliding_window_view(array, self.width, axis)
        return np.ascontiguousarray(np.moveaxis(windows, -1, axis + 1))


class ToNumber(_Text):
    """Texts to numbers; one that is none, or does not fit the dtype, is an error."""

    def __init__(self, data_type):
        self.dtype = np.dtype(str(dtype_of(data_type)).lower())

    def __call__(self, text):
        strings = strings_of("ToNumber", text)
        try:
            if self.dtype.kind in "iu":
                values = [int(s) for s in strings]
                info = np.iinfo(self.dtype)
                for v in values:
                    if not info.min <= v <= info.max:
                        raise RuntimeError(f"ToNumber: {v} does not fit {self.dtype}")
            else:
                values = [float(s) for s in strings]
        except ValueError as error:
            raise RuntimeError(f"ToNumber: {error}") from None
        return np.array(values, self.dtype).reshape(np.shape(text))


class AddToken(_Text):
    """A word at the beginning, or the end, of each sequence."""

    def __init__(self, token, begin=True):
        self.token, self.begin = _string("AddToken", "token", token), _args.flag("AddToken", "begin", begin)

    def __call__(self, words):
        words = np.asarray(words, np.str_)
        if words.ndim not in (1, 2):
            raise RuntimeError(f"AddToken: expected 1 or 2 dimensions, got shape {words.shape}")
        token = np.full((*words.shape[:-1], 1), self.token)
        return np.concatenate([token, words] if self.begin else [words, token], -1)


class Truncate(_Text):
    """The first max_seq_len of the last dimension."""

    def __init__(self, max_seq_len):
        self.length = _args.integer("Truncate", "max_seq_len", max_seq_len)
        if self.length < 0:
            raise ValueError(f"Truncate: max_seq_len must not be negative, got {max_seq_len}")

    def __call__(self, array):
        array = np.asarray(array)
        if array.ndim not in (1, 2):
            raise RuntimeError(f"Truncate: expected 1 or 2 dimensions, got shape {array.shape}")
        return np.ascontiguousarray(array[..., : self.length])


class TruncateSequencePair(_Text):
    """Two sequences cut, the longer one first, until both together have max_length."""

    def __init__(self, max_length):
        self.length = _args.integer("TruncateSequencePair", "max_length", max_length)
        if self.length < 0:
            raise ValueError(f"TruncateSequencePair: max_length must not be negative, got {max_length}")

    def __call__(self, first, second):
        first, second = np.asarray(first), np.asarray(second)
        a, b = len(first), len(second)
        while a + b > self.length:
            if a > b:
                a -= 1
            else:
                b -= 1
        return first[:a], second[:b]


class PythonTokenizer(_Text):
    """Tokens by a Python function of one str."""

    def __init__(self, tokenizer):
        if not callable(tokenizer):
            raise TypeError(f"PythonTokenizer: tokenizer must be callable, got {tokenizer!r}")
        self.tokenizer = tokenizer

    def __call__(self, text):
        tokens = words_of(
            "PythonTokenizer", "what the tokenizer returned", list(self.tokenizer(text_of("PythonTokenizer", text)))
        )
        return np.array(tokens or [""], np.str_)
