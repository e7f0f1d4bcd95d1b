// SPDX-License-Identifier: Apache-2.0
#include "undertow/data/text/text.h"

#include <unicode/normalizer2.h>
#include <unicode/regex.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>
#include <unicode/uscript.h>
#include <unicode/utf8.h>

#include <memory>
#include <utility>

#include "undertow/base/check.h"

namespace undertow::data::text {
namespace {

struct Character {
  UChar32 code;
  std::uint32_t start, limit;
};

std::vector<Character> characters(const std::string& text) {
  std::vector<Character> out;
  const auto* s = reinterpret_cast<const std::uint8_t*>(text.data());
  const auto n = static_cast<std::int32_t>(text.size());
  for (std::int32_t i = 0; i < n;) {
    const std::int32_t start = i;
    UChar32 c;
    U8_NEXT(s, i, n, c);
    UNDERTOW_CHECK(c >= 0, DataError, "text: byte {} is not UTF-8", start);
    out.push_back({c, static_cast<std::uint32_t>(start), static_cast<std::uint32_t>(i)});
  }
  return out;
}

Token cut(const std::string& text, std::uint32_t start, std::uint32_t limit) {
  return {text.substr(start, limit - start), start, limit};
}

/// Every tokenizer gives at least one token.
Tokens or_empty(Tokens tokens) {
  if (tokens.empty()) tokens.push_back({});
  return tokens;
}

icu::UnicodeString wide(const std::string& s) {
  characters(s);  // malformed UTF-8 would become replacement characters
  return icu::UnicodeString::fromUTF8(s);
}

std::string narrow(const icu::UnicodeString& s) {
  std::string out;
  s.toUTF8String(out);
  return out;
}

void check(UErrorCode status, const char* what) {
  UNDERTOW_CHECK(U_SUCCESS(status), ValueError, "{}: {}", what, u_errorName(status));
}

std::unique_ptr<icu::RegexMatcher> matcher(const std::string& pattern) {
  UErrorCode status = U_ZERO_ERROR;
  auto m = std::make_unique<icu::RegexMatcher>(wide(pattern), 0, status);
  UNDERTOW_CHECK(U_SUCCESS(status), ValueError, "the regular expression '{}' is not valid: {}", pattern,
                 u_errorName(status));
  return m;
}

bool is_chinese(UChar32 c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
         (c >= 0x2A700 && c <= 0x2B73F) || (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B820 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

/// Punctuation as BERT has it: all of ASCII's symbols, and Unicode's punctuation.
bool is_mark(UChar32 c) {
  return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) || (c >= 123 && c <= 126) ||
         (u_ispunct(c) != 0);
}

/// The length in bytes of a reserved token ([CLS], [unused7], ...) at `at`, or 0.
std::size_t reserved(const std::string& text, std::size_t at) {
  if (text[at] != '[') return 0;
  for (const char* name : {"[CLS]", "[SEP]", "[UNK]", "[PAD]", "[MASK]"})
    if (text.compare(at, std::char_traits<char>::length(name), name) == 0) return std::char_traits<char>::length(name);
  if (text.compare(at, 7, "[unused") != 0) return 0;
  std::size_t end = at + 7;
  while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
  return end > at + 7 && end < text.size() && text[end] == ']' ? end + 1 - at : 0;
}

}  // namespace

Tokens whitespace_tokens(const std::string& text) {
  Tokens out;
  std::optional<std::uint32_t> from;
  for (const Character& c : characters(text)) {
    const bool space = u_isUWhiteSpace(c.code);
    if (space && from) out.push_back(cut(text, *std::exchange(from, std::nullopt), c.start));
    if (!space && !from) from = c.start;
  }
  if (from) out.push_back(cut(text, *from, static_cast<std::uint32_t>(text.size())));
  return or_empty(std::move(out));
}

Tokens character_tokens(const std::string& text) {
  Tokens out;
  for (const Character& c : characters(text)) out.push_back(cut(text, c.start, c.limit));
  return or_empty(std::move(out));
}

Tokens script_tokens(const std::string& text, bool keep_whitespace) {
  Tokens out;
  std::uint32_t from = 0;
  UScriptCode script = USCRIPT_INVALID_CODE;
  bool space = false;
  const auto end = [&](std::uint32_t limit) {
    if (limit > from && (!space || keep_whitespace)) out.push_back(cut(text, from, limit));
    from = limit;
  };
  for (const Character& c : characters(text)) {
    UErrorCode status = U_ZERO_ERROR;
    const UScriptCode s = uscript_getScript(c.code, &status);
    const bool is_space = u_isUWhiteSpace(c.code);
    if (c.start > 0 && (is_space != space || (!is_space && s != script))) end(c.start);
    script = s;
    space = is_space;
  }
  end(static_cast<std::uint32_t>(text.size()));
  return or_empty(std::move(out));
}

std::string fold_case(const std::string& text) { return narrow(wide(text).foldCase()); }

std::string normalize(const std::string& text, NormalizeForm form) {
  if (form == NormalizeForm::kNone) return text;
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* n = form == NormalizeForm::kNfc    ? icu::Normalizer2::getNFCInstance(status)
                              : form == NormalizeForm::kNfkc ? icu::Normalizer2::getNFKCInstance(status)
                              : form == NormalizeForm::kNfd  ? icu::Normalizer2::getNFDInstance(status)
                                                             : icu::Normalizer2::getNFKDInstance(status);
  check(status, "NormalizeUTF8");
  const icu::UnicodeString out = n->normalize(wide(text), status);
  check(status, "NormalizeUTF8");
  return narrow(out);
}

std::string regex_replace(const std::string& text, const std::string& pattern, const std::string& replacement,
                          bool all) {
  const auto m = matcher(pattern);
  const icu::UnicodeString in = wide(text), by = wide(replacement);
  m->reset(in);
  UErrorCode status = U_ZERO_ERROR;
  const icu::UnicodeString out = all ? m->replaceAll(by, status) : m->replaceFirst(by, status);
  check(status, "RegexReplace");
  return narrow(out);
}

Tokens regex_tokens(const std::string& text, const std::string& delimiter, const std::string& keep) {
  const auto m = matcher(delimiter);
  const auto kept = keep.empty() ? nullptr : matcher(keep);
  const icu::UnicodeString in = wide(text);
  m->reset(in);
  Tokens out;
  std::int32_t from = 0;  // in UTF-16 units, as ICU counts
  std::uint32_t at = 0;   // in bytes
  const auto take = [&](std::int32_t limit, bool wanted) {
    std::string part = narrow(in.tempSubStringBetween(from, limit));
    const auto bytes = static_cast<std::uint32_t>(part.size());
    if (wanted && bytes) out.push_back({std::move(part), at, at + bytes});
    at += bytes;
    from = limit;
  };
  UErrorCode status = U_ZERO_ERROR;
  while (m->find(status) && U_SUCCESS(status)) {
    const std::int32_t start = m->start(status), end = m->end(status);
    if (end == start) continue;
    take(start, true);
    bool wanted = false;
    if (kept) {
      const icu::UnicodeString match = in.tempSubStringBetween(start, end);
      kept->reset(match);
      wanted = kept->matches(status);
    }
    take(end, wanted);
  }
  check(status, "RegexTokenizer");
  take(in.length(), true);
  return or_empty(std::move(out));
}

Tokens basic_tokens(const std::string& text, const BasicOptions& o) {
  // The text as it is tokenized, part by part, so that reserved tokens keep their case.
  std::string clean;
  std::vector<std::pair<std::size_t, std::size_t>> whole;  // reserved tokens: places in `clean`
  const auto add = [&](const std::string& part) {
    if (part.empty()) return;
    std::string s = o.lower_case ? normalize(fold_case(part), NormalizeForm::kNfd) : normalize(part, o.form);
    for (const Character& c : characters(s)) {
      const auto type = u_charType(c.code);
      if (o.lower_case && type == U_NON_SPACING_MARK) continue;
      if (c.code == 0 || c.code == 0xFFFD) continue;
      const bool space = u_isUWhiteSpace(c.code);
      if (!space && (type == U_CONTROL_CHAR || type == U_FORMAT_CHAR)) continue;
      clean.append(s, c.start, c.limit - c.start);
    }
  };
  characters(text);
  std::size_t from = 0;
  for (std::size_t i = 0; o.preserve_unused_token && i < text.size();) {
    const std::size_t n = reserved(text, i);
    if (n == 0) {
      ++i;
      continue;
    }
    add(text.substr(from, i - from));
    whole.emplace_back(clean.size(), n);
    clean.append(text, i, n);
    i += n;
    from = i;
  }
  add(text.substr(from));

  Tokens out;
  std::optional<std::uint32_t> word;
  const auto end_word = [&](std::uint32_t limit) {
    if (word) out.push_back(cut(clean, *std::exchange(word, std::nullopt), limit));
  };
  std::size_t next = 0;
  std::uint32_t skip_to = 0;
  for (const Character& c : characters(clean)) {
    if (c.start < skip_to) continue;
    if (next < whole.size() && whole[next].first == c.start) {
      end_word(c.start);
      skip_to = c.start + static_cast<std::uint32_t>(whole[next++].second);
      out.push_back(cut(clean, c.start, skip_to));
      continue;
    }
    const bool space = u_isUWhiteSpace(c.code);
    if (space || is_mark(c.code) || is_chinese(c.code)) {
      end_word(c.start);
      if (!space || o.keep_whitespace) out.push_back(cut(clean, c.start, c.limit));
    } else if (!word) {
      word = c.start;
    }
  }
  end_word(static_cast<std::uint32_t>(clean.size()));
  return or_empty(std::move(out));
}

Vocab::Vocab(const std::vector<std::string>& words) {
  for (const std::string& w : words) {
    const auto number = static_cast<std::int32_t>(numbers_.size());
    UNDERTOW_CHECK(numbers_.emplace(w, number).second, ValueError, "Vocab: the word '{}' comes twice", w);
    words_.emplace(number, w);
  }
}

Vocab::Vocab(std::map<std::string, std::int32_t> numbers) {
  for (const auto& [word, number] : numbers) {
    UNDERTOW_CHECK(number >= 0, ValueError, "Vocab: the word '{}' has the negative number {}", word, number);
    numbers_.emplace(word, number);
    words_.emplace(number, word);
  }
}

std::optional<std::int32_t> Vocab::find(const std::string& word) const {
  const auto at = numbers_.find(word);
  return at == numbers_.end() ? std::nullopt : std::optional(at->second);
}

std::optional<std::string> Vocab::word(std::int32_t number) const {
  const auto at = words_.find(number);
  return at == words_.end() ? std::nullopt : std::optional(at->second);
}

Tokens wordpieces(const Tokens& words, const Vocab& vocab, const WordpieceOptions& o) {
  Tokens out;
  const auto unknown = [&](const Token& w) {
    out.push_back({o.unknown_token.empty() ? w.text : o.unknown_token, w.start, w.limit});
  };
  for (const Token& w : words) {
    if (w.text.empty()) {
      out.push_back(w);
      continue;
    }
    if (static_cast<std::int64_t>(w.text.size()) > o.max_bytes_per_token) {
      unknown(w);
      continue;
    }
    const std::vector<Character> letters = characters(w.text);
    Tokens pieces;
    std::size_t from = 0;
    while (from < letters.size()) {
      std::size_t to = letters.size();
      for (; to > from; --to) {
        const std::uint32_t start = letters[from].start, limit = letters[to - 1].limit;
        std::string piece = w.text.substr(start, limit - start);
        if (from > 0) piece = o.suffix_indicator + piece;
        if (!vocab.find(piece)) continue;
        pieces.push_back({std::move(piece), w.start + start, w.start + limit});
        break;
      }
      if (to == from) break;
      from = to;
    }
    if (from < letters.size()) unknown(w);
    else out.insert(out.end(), pieces.begin(), pieces.end());
  }
  return or_empty(std::move(out));
}

std::vector<std::string> ngrams(const std::vector<std::string>& tokens, const std::vector<std::int64_t>& n,
                                const std::pair<std::string, std::int64_t>& left_pad,
                                const std::pair<std::string, std::int64_t>& right_pad, const std::string& separator) {
  UNDERTOW_CHECK(!n.empty(), ValueError, "Ngram: n is empty");
  UNDERTOW_CHECK(left_pad.second >= 0 && right_pad.second >= 0, ValueError,
                 "Ngram: pad widths must not be negative, got {} and {}", left_pad.second, right_pad.second);
  std::vector<std::string> out;
  for (const std::int64_t k : n) {
    UNDERTOW_CHECK(k >= 1, ValueError, "Ngram: n must be positive, got {}", k);
    // A pad is never a run by itself.
    std::vector<std::string> all(static_cast<std::size_t>(std::min(left_pad.second, k - 1)), left_pad.first);
    all.insert(all.end(), tokens.begin(), tokens.end());
    all.insert(all.end(), static_cast<std::size_t>(std::min(right_pad.second, k - 1)), right_pad.first);
    const auto width = static_cast<std::size_t>(k);
    if (all.size() < width) out.emplace_back();
    for (std::size_t i = 0; i + width <= all.size(); ++i) {
      std::string run = all[i];
      for (std::size_t j = 1; j < width; ++j) run += separator + all[i + j];
      out.push_back(std::move(run));
    }
  }
  return out;
}

}  // namespace undertow::data::text
