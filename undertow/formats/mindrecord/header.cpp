// SPDX-License-Identifier: Apache-2.0
#include "undertow/formats/mindrecord/header.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "undertow/base/check.h"

namespace undertow::formats::mindrecord {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kBlob = "BLOB_DATA";
constexpr const char* kRaw = "RAW_DATA";
constexpr std::size_t kMostShards = 4096;
constexpr std::int64_t kMostPages = std::int64_t{1} << 31;
constexpr std::string_view kEncrypted = "ENCRYPT";

Json json_of(const Schema& schema) {
  Json fields = Json::object(), blobs = Json::array();
  for (const Field& f : schema.fields) {
    Json field = Json::object();
    if (f.shape) field["shape"] = *f.shape;
    field["type"] = name_of(f.type);
    fields[f.name] = std::move(field);
    if (f.is_blob()) blobs.push_back(f.name);
  }
  return {{"blob_fields", std::move(blobs)}, {"desc", schema.description}, {"schema", std::move(fields)}};
}

Json json_of(const Page& page, std::int64_t shard) {
  Json groups = Json::array();
  for (const RowGroup& g : page.blob ? std::vector<RowGroup>{{0, 0}} : page.groups)
    groups.push_back({{"id", g.id}, {"offset", g.offset}});
  return {{"end_row_id", page.past},
          {"page_id", page.id},
          {"page_size", page.used},
          {"page_type", page.blob ? kBlob : kRaw},
          {"page_type_id", page.kind_id},
          {"row_group_ids", std::move(groups)},
          {"shard_id", shard},
          {"start_row_id", page.first}};
}

/// A number in [0, limit).
std::uint64_t number(const Json& json, const char* key, std::uint64_t limit) {
  const Json& value = json.at(key);
  UNDERTOW_CHECK(value.is_number_integer() && value.get<std::int64_t>() >= 0 &&
                     static_cast<std::uint64_t>(value.get<std::int64_t>()) < limit,
                 FormatError, "'{}' is {}", key, value.dump());
  return value.get<std::uint64_t>();
}

Schema schema_of(const Json& json) {
  const Json& list = json.at("schema");
  UNDERTOW_CHECK(list.is_array() && list.size() == 1, FormatError, "there is not exactly one schema");
  Schema schema;
  schema.description = list[0].value("desc", "");
  for (const auto& [name, field] : list[0].at("schema").items()) {
    Field f{name, field_type_of(field.at("type").get<std::string>()), std::nullopt};
    if (field.contains("shape")) f.shape = field["shape"].get<std::vector<std::int64_t>>();
    schema.fields.push_back(std::move(f));
  }
  if (const auto index = json.find("index_fields"); index != json.end() && index->is_array())
    for (const Json& field : *index) schema.index.push_back(field.at("index_field").get<std::string>());
  schema.check();
  std::vector<std::string> blobs;
  for (const Field& f : schema.fields)
    if (f.is_blob()) blobs.push_back(f.name);
  const auto listed = list[0].value("blob_fields", Json::array());
  UNDERTOW_CHECK((listed.is_null() && blobs.empty()) || listed == Json(blobs), FormatError,
                 "the blob fields are {}, but the schema's are [{}]", listed.dump(), fmt::join(blobs, ", "));
  return schema;
}

Page page_of(const Json& json, std::uint64_t page_size) {
  Page page;
  const auto kind = json.at("page_type").get<std::string>();
  page.blob = kind == kBlob;
  UNDERTOW_CHECK(page.blob || kind == kRaw, FormatError, "a page has the type '{}'", kind);
  page.id = static_cast<std::int64_t>(number(json, "page_id", kMostPages));
  page.kind_id = static_cast<std::int64_t>(number(json, "page_type_id", kMostPages));
  page.used = number(json, "page_size", page_size + 1);
  page.first = static_cast<std::int64_t>(number(json, "start_row_id", std::uint64_t{1} << 40));
  page.past = static_cast<std::int64_t>(number(json, "end_row_id", std::uint64_t{1} << 40));
  UNDERTOW_CHECK(page.past >= page.first && static_cast<std::uint64_t>(page.past - page.first) <= page.used / kLength,
                 FormatError, "page {} says rows {} to {} in {} bytes", page.id, page.first, page.past, page.used);
  if (const auto groups = json.find("row_group_ids"); groups != json.end() && groups->is_array() && !page.blob)
    for (const Json& g : *groups)
      page.groups.push_back(
          {static_cast<std::int64_t>(number(g, "id", kMostPages)), number(g, "offset", page_size + 1)});
  return page;
}

Header parse(const InputFile& file, const std::string& text) {
  const Json json = Json::parse(text);
  UNDERTOW_CHECK(json.is_object(), FormatError, "it is not an object");
  Header h;
  const auto version = json.at("version").get<std::string>();
  UNDERTOW_CHECK(version == "3.0" || version == "2.0", FormatError, "the version is '{}', not 2.0 or 3.0", version);
  h.header_size = number(json, "header_size", 4 * kMostHeader);
  h.page_size = number(json, "page_size", 4 * kMostPage);
  UNDERTOW_CHECK(h.header_size >= text.size() + kLength && h.page_size >= kLength, FormatError,
                 "header_size {} and page_size {} cannot be", h.header_size, h.page_size);
  h.schema = schema_of(json);
  h.shards = json.at("shard_addresses").get<std::vector<std::string>>();
  UNDERTOW_CHECK(!h.shards.empty() && h.shards.size() <= kMostShards, FormatError, "{} shards are listed",
                 h.shards.size());
  h.shard = static_cast<std::int64_t>(number(json, "shard_id", h.shards.size()));
  if (const auto saved = json.find("compression_size"); saved != json.end() && saved->is_number_integer())
    h.saved = saved->get<std::int64_t>();
  std::set<std::int64_t> ids;
  if (const Json& pages = json.at("page"); !pages.is_null())
    for (const Json& page : pages) {
      h.pages.push_back(page_of(page, h.page_size));
      const Page& p = h.pages.back();
      UNDERTOW_CHECK(ids.insert(p.id).second, FormatError, "page {} is listed twice", p.id);
      UNDERTOW_CHECK(h.start_of(p) + p.used <= file.size(), FormatError,
                     "the file is cut short: page {} ends at offset {}, the file at {}", p.id, h.start_of(p) + p.used,
                     file.size());
    }
  std::ranges::stable_sort(h.pages, {}, [](const Page& p) { return std::pair(!p.blob, p.kind_id); });
  std::int64_t rows = 0, kind_id = 0;
  for (const Page& p : h.pages) {
    if (!p.blob) continue;
    UNDERTOW_CHECK(p.kind_id == kind_id++ && p.first == rows, FormatError,
                   "blob page {} begins with row {}, after {} rows", p.id, p.first, rows);
    rows = p.past;
  }
  return h;
}

/// Goes through the records of the pages of one kind, a window at a time where they are small.
class Walker {
 public:
  Walker(const InputFile& file, const Header& header) : file_(file), header_(header) {}

  template <typename F>
  void walk(bool blob, F&& each) {
    for (const Page& page : header_.pages) {
      if (page.blob != blob) continue;
      const std::uint64_t start = header_.start_of(page), end = start + page.used;
      window_bytes_ = 0;
      for (std::uint64_t at = start; at < end;) {
        const std::uint64_t length = end - at >= kLength ? length_at(at, end) : end;
        UNDERTOW_CHECK(end - at >= kLength && length <= end - at - kLength, FormatError,
                       "{} is damaged at offset {}: a record of {} bytes does not fit into page {}", file_.path(), at,
                       length, page.id);
        each(page, at, static_cast<std::uint32_t>(length));
        at += kLength + length;
      }
    }
  }

 private:
  std::uint64_t length_at(std::uint64_t at, std::uint64_t end) {
    if (at < window_start_ || at + kLength > window_start_ + window_bytes_) {
      // Where the last record was long, the next one's length is all that is of use.
      const std::uint64_t step = window_bytes_ == 0 ? window_.size() : at - window_start_;
      window_bytes_ = std::min<std::uint64_t>(step > 4 * window_.size() ? kLength : window_.size(), end - at);
      window_start_ = at;
      file_.read(at, window_.data(), window_bytes_);
    }
    std::uint64_t length = 0;
    std::memcpy(&length, window_.data() + (at - window_start_), kLength);
    return length;
  }

  const InputFile& file_;
  const Header& header_;
  std::vector<char> window_ = std::vector<char>(4096);
  std::uint64_t window_start_ = 0, window_bytes_ = 0;
};

}  // namespace

std::int64_t Header::rows() const {
  std::int64_t rows = 0;
  for (const Page& p : pages) rows = std::max(rows, p.past);
  return rows;
}

std::string write_header(const Header& h) {
  Json index = nullptr, pages = Json::array();
  for (const std::string& name : h.schema.index) index.push_back({{"index_field", name}, {"schema_id", 0}});
  std::vector<Page> by_id = h.pages;
  std::ranges::sort(by_id, {}, &Page::id);
  for (const Page& p : by_id) pages.push_back(json_of(p, h.shard));
  const Json json = {{"header_size", h.header_size}, {"index_fields", std::move(index)},
                     {"page", std::move(pages)},     {"page_size", h.page_size},
                     {"compression_size", h.saved},  {"schema", Json::array({json_of(h.schema)})},
                     {"shard_addresses", h.shards},  {"shard_id", h.shard},
                     {"statistics", nullptr},        {"version", "3.0"}};
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  UNDERTOW_CHECK(text.size() + kLength <= h.header_size, ValueError,
                 "the header of {} bytes ({} pages) does not fit into header_size {}; set a larger header_size or "
                 "page_size",
                 text.size() + kLength, h.pages.size(), h.header_size);
  const auto length = static_cast<std::uint64_t>(text.size());
  return std::string(reinterpret_cast<const char*>(&length), kLength) + text;
}

Header read_header(const InputFile& file) {
  const auto fail = [&](std::uint64_t offset, const std::string& why) {
    throw FormatError(fmt::format("{} is not a whole MindRecord file, offset {}: {}", file.path(), offset, why));
  };
  std::uint64_t length = 0;
  if (file.size() < kLength) fail(0, fmt::format("it has {} bytes", file.size()));
  file.read(0, &length, kLength);
  if (length == 0) fail(0, "its header was never written; the writing was interrupted");
  char tail[kEncrypted.size()];
  if (length > file.size() - kLength || length > kMostHeader) {
    file.read(file.size() - kEncrypted.size(), tail, kEncrypted.size());
    if (std::string_view(tail, kEncrypted.size()) == kEncrypted)
      fail(file.size() - kEncrypted.size(), "it is encrypted, which is not supported");
    fail(0, fmt::format("a header of {} bytes is announced, the file has {}", length, file.size()));
  }
  std::string text(static_cast<std::size_t>(length), '\0');
  file.read(kLength, text.data(), text.size());
  try {
    return parse(file, text);
  } catch (const nlohmann::json::exception& e) {
    fail(kLength, fmt::format("the header is damaged: {}", e.what()));
  } catch (const Error& e) {
    fail(kLength, fmt::format("the header is damaged: {}", e.what()));
  }
  UNDERTOW_ASSERT(false);
}

std::vector<Place> scan(const InputFile& file, const Header& header) {
  std::vector<Place> places;
  places.reserve(static_cast<std::size_t>(header.rows()));
  Walker walker(file, header);
  walker.walk(true, [&](const Page&, std::uint64_t at, std::uint32_t bytes) {
    places.push_back({.blob = at, .blob_bytes = bytes});
  });
  std::size_t raws = 0;
  walker.walk(false, [&](const Page&, std::uint64_t at, std::uint32_t bytes) {
    if (raws < places.size()) places[raws].raw = at, places[raws].raw_bytes = bytes;
    ++raws;
  });
  UNDERTOW_CHECK(raws == places.size() && static_cast<std::int64_t>(raws) == header.rows(), FormatError,
                 "{} is damaged: its raw pages hold {} records, its blob pages {}, and its header says {}", file.path(),
                 raws, places.size(), header.rows());
  return places;
}

}  // namespace undertow::formats::mindrecord
