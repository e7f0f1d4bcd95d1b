// SPDX-License-Identifier: Apache-2.0
// Texts: Python's str to the tokenizers of data/text and back.
#include <nanobind/stl/map.h>
#include <nanobind/stl/unordered_map.h>

#include "python/src/data_sources.h"
#include "undertow/data/text/text.h"

namespace undertow::python {
namespace {

namespace text = data::text;

/// (texts, starts, limits)
nb::tuple split(const text::Tokens& tokens) {
  nb::list words, starts, limits;
  for (const text::Token& t : tokens) {
    words.append(nb::str(t.text.data(), t.text.size()));
    starts.append(t.start);
    limits.append(t.limit);
  }
  return nb::make_tuple(words, starts, limits);
}

void bind_tokenizers(nb::module_& m) {
  m.def("whitespace_tokens", [](const std::string& s) { return split(text::whitespace_tokens(s)); });
  m.def("character_tokens", [](const std::string& s) { return split(text::character_tokens(s)); });
  m.def("script_tokens", [](const std::string& s, bool keep) { return split(text::script_tokens(s, keep)); });
  m.def("regex_tokens", [](const std::string& s, const std::string& delimiter, const std::string& keep) {
    return split(text::regex_tokens(s, delimiter, keep));
  });
  const auto basic = [](const std::string& s, bool lower, bool keep, int form, bool preserve) {
    return text::basic_tokens(s, {lower, keep, static_cast<text::NormalizeForm>(form), preserve});
  };
  m.def("basic_tokens", [basic](const std::string& s, bool lower, bool keep, int form, bool preserve) {
    return split(basic(s, lower, keep, form, preserve));
  });
  m.def("wordpieces", [](const std::vector<std::string>& words, const text::Vocab& vocab, const std::string& suffix,
                         std::int64_t most, const std::string& unknown) {
    text::Tokens tokens;
    for (const std::string& w : words) tokens.push_back({w, 0, static_cast<std::uint32_t>(w.size())});
    return split(text::wordpieces(tokens, vocab, {suffix, unknown, most}));
  });
  m.def("bert_tokens",
        [basic](const std::string& s, bool lower, bool keep, int form, bool preserve, const text::Vocab& vocab,
                const std::string& suffix, std::int64_t most, const std::string& unknown) {
          return split(text::wordpieces(basic(s, lower, keep, form, preserve), vocab, {suffix, unknown, most}));
        });
  m.def("ngrams", &text::ngrams);
  m.def("fold_case", &text::fold_case);
  m.def("normalize",
        [](const std::string& s, int form) { return text::normalize(s, static_cast<text::NormalizeForm>(form)); });
  m.def("regex_replace", &text::regex_replace);
}

}  // namespace

void bind_text(nb::module_& m) {
  nb::class_<text::Vocab>(m, "Vocab")
      .def(nb::init<const std::vector<std::string>&>())
      .def(nb::init<std::map<std::string, std::int32_t>>())
      .def("find", &text::Vocab::find)
      .def("word", &text::Vocab::word)
      .def("words", [](const text::Vocab& v) { return v.words(); });
  bind_tokenizers(m);
}

}  // namespace undertow::python
