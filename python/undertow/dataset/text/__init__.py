# SPDX-License-Identifier: Apache-2.0
"""Operations on texts: NumPy arrays of str, or Python's str. Tokens are arrays of str.

The work is done in C++ on UTF-8. The operations are Python callables to map(), because the texts are Python's.
"""

from undertow.dataset.text.transforms import (  # noqa: F401
    AddToken,
    BasicTokenizer,
    BertTokenizer,
    CaseFold,
    Lookup,
    Ngram,
    NormalizeUTF8,
    PythonTokenizer,
    RegexReplace,
    RegexTokenizer,
    SlidingWindow,
    ToNumber,
    Truncate,
    TruncateSequencePair,
    UnicodeCharTokenizer,
    UnicodeScriptTokenizer,
    WhitespaceTokenizer,
    WordpieceTokenizer,
)
from undertow.dataset.text.utils import NormalizeForm, Vocab, to_bytes, to_str  # noqa: F401
