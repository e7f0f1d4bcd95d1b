// SPDX-License-Identifier: Apache-2.0
// data/text/text.h: texts (UTF-8) to tokens, and tokens to numbers. Unicode's properties and regular expressions are
// ICU's.
//
// Malformed UTF-8 raises DataError. A token knows the bytes [start, limit) of the text that it stands for.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace undertow::data::text {

struct Token {
  std::string text;
  std::uint32_t start = 0, limit = 0;
};
using Tokens = std::vector<Token>;

enum class NormalizeForm { kNone = 0, kNfc = 1, kNfkc = 2, kNfd = 3, kNfkd = 4 };

/// Between white space; a text without any token gives one that is empty, as in the other tokenizers.
Tokens whitespace_tokens(const std::string& text);
/// One character each.
Tokens character_tokens(const std::string& text);
/// Runs of one script; white space is a run of its own, left out unless kept.
Tokens script_tokens(const std::string& text, bool keep_whitespace);

std::string fold_case(const std::string& text);
std::string normalize(const std::string& text, NormalizeForm form);
/// `replacement` may hold $1; all matches or the first.
std::string regex_replace(const std::string& text, const std::string& pattern, const std::string& replacement,
                          bool all);
/// The parts between matches of `delimiter`; a match that `keep` matches as a whole is a token too.
/// Throws ValueError for a pattern that is none.
Tokens regex_tokens(const std::string& text, const std::string& delimiter, const std::string& keep);

struct BasicOptions {
  bool lower_case = false;  ///< folds case and drops accents; the normalization form is then NFD
  bool keep_whitespace = false;
  NormalizeForm form = NormalizeForm::kNone;
  bool preserve_unused_token = true;  ///< [CLS], [SEP], [UNK], [PAD], [MASK] and [unused12] stay whole
};
/// BERT's first step: at white space, around punctuation and Chinese characters, without control characters.
Tokens basic_tokens(const std::string& text, const BasicOptions& options);

/// Words and their numbers.
class Vocab {
 public:
  /// Throws ValueError for a word that comes twice.
  explicit Vocab(const std::vector<std::string>& words);
  /// Throws ValueError for a negative number.
  explicit Vocab(std::map<std::string, std::int32_t> numbers);

  std::optional<std::int32_t> find(const std::string& word) const;
  /// The word of a number, or nothing.
  std::optional<std::string> word(std::int32_t number) const;
  const std::unordered_map<std::string, std::int32_t>& words() const { return numbers_; }

 private:
  std::unordered_map<std::string, std::int32_t> numbers_;
  std::unordered_map<std::int32_t, std::string> words_;
};

struct WordpieceOptions {
  std::string suffix_indicator = "##", unknown_token = "[UNK]";
  std::int64_t max_bytes_per_token = 100;
};
/// The longest pieces of the vocabulary from the left (Wu et al., arXiv:1609.08144); a word that has none is
/// unknown_token, or itself where that is empty.
Tokens wordpieces(const Tokens& words, const Vocab& vocab, const WordpieceOptions& options);

/// Runs of n tokens for each n, with the pads at both ends, joined by the separator. n: at least 1 each.
std::vector<std::string> ngrams(const std::vector<std::string>& tokens, const std::vector<std::int64_t>& n,
                                const std::pair<std::string, std::int64_t>& left_pad,
                                const std::pair<std::string, std::int64_t>& right_pad, const std::string& separator);

}  // namespace undertow::data::text
