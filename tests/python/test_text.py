# SPDX-License-Identifier: Apache-2.0
"""Operations on texts."""

import numpy as np
import pytest
from undertow.dataset import text
from undertow.dataset.text import NormalizeForm, Vocab

VOCAB = Vocab.from_list(["my", "fav", "##or", "##ite", "book", "is", "love", "dur", "##ing", "the", "[UNK]", "我"])

TOKENS = [
    (text.WhitespaceTokenizer(), " a bc\td\n", ["a", "bc", "d"]),
    (text.WhitespaceTokenizer(), "北 京", ["北", "京"]),
    (text.WhitespaceTokenizer(), " ", [""]),
    (text.UnicodeCharTokenizer(), "a b北", ["a", " ", "b", "北"]),
    (text.UnicodeScriptTokenizer(), "Welcome to 北京", ["Welcome", "to", "北京"]),
    (text.UnicodeScriptTokenizer(True), "to 北京", ["to", " ", "北京"]),
    (text.RegexTokenizer(r"\s+"), "a  b c", ["a", "b", "c"]),
    (text.RegexTokenizer(r"[\s,]", ","), "a,b c", ["a", ",", "b", "c"]),
    (text.BasicTokenizer(), "Hi, 北京! [CLS]x", ["Hi", ",", "北", "京", "!", "[CLS]", "x"]),
    (text.BasicTokenizer(True), "Café [unused3] A\u200b", ["cafe", "[unused3]", "a"]),
    (text.BasicTokenizer(preserve_unused_token=False), "[CLS]", ["[", "CLS", "]"]),
    (text.BasicTokenizer(keep_whitespace=True), "a b", ["a", " ", "b"]),
    (text.BertTokenizer(VOCAB, lower_case=True), "My favorite 我x", ["my", "fav", "##or", "##ite", "我", "[UNK]"]),
    (text.WordpieceTokenizer(VOCAB), ["during", "xyz", "favor"], ["dur", "##ing", "[UNK]", "fav", "##or"]),
    (text.WordpieceTokenizer(VOCAB, unknown_token=""), ["xyz"], ["xyz"]),
    (text.WordpieceTokenizer(VOCAB, max_bytes_per_token=3), ["during"], ["[UNK]"]),
    (text.Ngram(2), ["a", "b", "c"], ["a b", "b c"]),
    (text.Ngram([1, 2], ("<", 1), (">", 1), "-"), ["a", "b"], ["a", "b", "<-a", "a-b", "b->"]),
    (text.AddToken("[CLS]"), ["a"], ["[CLS]", "a"]),
    (text.AddToken("[SEP]", False), [["a"], ["b"]], [["a", "[SEP]"], ["b", "[SEP]"]]),
    (text.PythonTokenizer(lambda s: s.split("-")), "a-b", ["a", "b"]),
    (text.CaseFold(), "Straße ÄB", "strasse äb"),
    (text.NormalizeUTF8(), "ﬁ①", "fi1"),
    (text.NormalizeUTF8(NormalizeForm.NFD), "é", "e\u0301"),
    (text.NormalizeUTF8(NormalizeForm.NONE), "é", "é"),
    (text.RegexReplace(r"(\d)", "<$1>"), "a1b2", "a<1>b<2>"),
    (text.RegexReplace(r"\d", "x", False), "a1b2", "axb2"),
    (text.Truncate(2), ["a", "b", "c"], ["a", "b"]),
]


@pytest.mark.parametrize("number", range(len(TOKENS)))
def test_tokens(number):
    op, given, want = TOKENS[number]
    got = op(np.array(given))
    assert got.dtype.kind == "U" and got.tolist() == want
    assert op(given if isinstance(given, str) else np.array(given)).tolist() == want


def test_offsets_are_bytes():
    words, starts, limits = text.WhitespaceTokenizer(True)("北 ab")
    assert words.tolist() == ["北", "ab"] and starts.tolist() == [0, 4] and limits.tolist() == [3, 6]
    assert starts.dtype == np.uint32
    words, starts, limits = text.RegexTokenizer(" ", with_offsets=True)("é b")
    assert starts.tolist() == [0, 3] and limits.tolist() == [2, 4]


def test_vocab(tmp_path):
    v = Vocab.from_list(["a", "b"], ["<pad>"])
    assert v.vocab() == {"<pad>": 0, "a": 1, "b": 2}
    assert v.tokens_to_ids(["b", "zz"]) == [2, -1] and v.tokens_to_ids("a") == 1
    assert v.ids_to_tokens([0, 9]) == ["<pad>", ""] and v.ids_to_tokens(1) == "a"
    assert Vocab.from_list(["a"], ["<pad>"], False).vocab() == {"a": 0, "<pad>": 1}
    assert Vocab.from_dict({"x": 7}).tokens_to_ids("x") == 7
    path = tmp_path / "words.txt"
    path.write_text("a,1\nb,2\nc,3\n", encoding="utf8")
    assert Vocab.from_file(str(path), ",", 2, ["<unk>"]).vocab() == {"<unk>": 0, "a": 1, "b": 2}
    for make in (
        lambda: Vocab.from_list(["a", "a"]),
        lambda: Vocab.from_list(["a"], ["a"]),
        lambda: Vocab.from_dict({"a": -1}),
        lambda: Vocab.from_file(str(path), vocab_size=0),
    ):
        with pytest.raises(ValueError, match="Vocab"):
            make()


def test_numbers():
    v = Vocab.from_list(["a", "b", "<unk>"])
    assert text.Lookup(v)(np.array([["a"], ["b"]])).tolist() == [[0], [1]]
    got = text.Lookup(v, "<unk>", np.int64)(np.array(["b", "?"]))
    assert got.tolist() == [1, 2] and got.dtype == np.int64
    assert text.ToNumber(np.float32)(np.array(["1.5", "-2"])).tolist() == [1.5, -2]
    assert text.ToNumber(np.int8)("7") == 7
    windows = text.SlidingWindow(2)(np.arange(4))
    assert windows.tolist() == [[0, 1], [1, 2], [2, 3]]
    assert text.SlidingWindow(5)(np.arange(4)).shape == (0, 5)
    a, b = text.TruncateSequencePair(4)(np.arange(5), np.arange(2))
    assert (a.tolist(), b.tolist()) == ([0, 1], [0, 1])


def test_errors():
    v = Vocab.from_list(["a"])
    for run, kind, match in (
        (lambda: text.Lookup(v)(np.array(["zz"])), RuntimeError, "Lookup: 'zz'"),
        (lambda: text.Lookup(v, "zz"), ValueError, "unknown_token"),
        (lambda: text.Lookup("v"), TypeError, "vocab must be a Vocab"),
        (lambda: text.RegexTokenizer("("), ValueError, "not valid"),
        (lambda: text.RegexReplace("(", ""), ValueError, "not valid"),
        (lambda: text.Ngram(0), ValueError, "Ngram: n"),
        (lambda: text.ToNumber(np.int8)("300"), RuntimeError, "does not fit int8"),
        (lambda: text.ToNumber(np.int32)("x"), RuntimeError, "ToNumber"),
        (lambda: text.WhitespaceTokenizer()(np.int32(3)), TypeError, "expected text"),
        (lambda: text.WhitespaceTokenizer()(np.array(["a", "b"])), RuntimeError, "one text"),
        (lambda: text.Truncate(-1), ValueError, "max_seq_len"),
    ):
        with pytest.raises(kind, match=match):
            run()
