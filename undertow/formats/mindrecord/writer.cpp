// SPDX-License-Identifier: Apache-2.0
#include "undertow/formats/mindrecord/writer.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "undertow/base/check.h"
#include "undertow/formats/atomic_file.h"
#include "undertow/formats/mindrecord/header.h"
#include "undertow/formats/mindrecord/index.h"

namespace undertow::formats::mindrecord {
namespace {

namespace fs = std::filesystem;

constexpr int kMostShards = 1000;
constexpr std::size_t kFlush = std::size_t{1} << 20;
constexpr std::string_view kNotInNames = ":*?\"<>|`&;'";

/// One data file and its index on the way.
class Shard {
 public:
  Shard(const std::string& path, Header header)
      : path_(path), header_(std::move(header)), file_(path), index_(path + ".db", file_name(), header_.schema) {}

  std::int64_t rows() const { return rows_; }
  Header& header() { return header_; }

  void add(const Schema& schema, const Record& record) {
    raw_.assign(kLength, '\0');
    encode_raw(schema, record, raw_);
    set_length(raw_);
    blob_.assign(kLength, '\0');
    header_.saved += encode_blob(schema, record, blob_);
    set_length(blob_);
    add(index_fields(schema, record));
  }

  /// Takes over the rows of a file that is appended to.
  void take_over(const InputFile& old) {
    const std::vector<Place> places = scan(old, header_);
    // The last group may go on, where its raw parts are the last of the last raw page.
    std::vector<Page>& pages = header_.pages;
    const auto raw_page = std::find_if(pages.rbegin(), pages.rend(), [](const Page& p) { return !p.blob; });
    const auto blob_page = std::find_if(pages.rbegin(), pages.rend(), [](const Page& p) { return p.blob; });
    std::string bytes;
    for (const Page& p : pages)
      for (std::uint64_t at = 0; at < p.used; at += bytes.size()) {
        bytes.resize(static_cast<std::size_t>(std::min<std::uint64_t>(p.used - at, 4 * kFlush)));
        old.read(header_.start_of(p) + at, bytes.data(), bytes.size());
        file_.write_at(header_.start_of(p) + at, bytes.data(), bytes.size());
      }
    const bool goes_on = raw_page != pages.rend() && blob_page != pages.rend() && !raw_page->groups.empty() &&
                         raw_page->groups.back().id == blob_page->kind_id &&
                         raw_page->groups.back().offset <= raw_page->used;
    const std::int64_t kept = !goes_on ? static_cast<std::int64_t>(places.size()) : blob_page->first;
    auto page_at = [&, last = std::array<const Page*, 2>{}](std::uint64_t at) mutable -> const Page& {
      const auto holds = [&](const Page& p) {
        return at >= header_.start_of(p) && at - header_.start_of(p) < header_.page_size;
      };
      for (const Page* p : last)
        if (p && holds(*p)) return *p;
      const Page& found = *std::ranges::find_if(pages, holds);
      return *(last[found.blob] = &found);
    };
    const std::vector<bool> wanted(header_.schema.fields.size(), true);
    for (std::size_t i = 0; i < places.size(); ++i) {
      const Place& place = places[i];
      Record record(header_.schema.fields.size());
      bytes.resize(place.raw_bytes);
      old.read(place.raw + kLength, bytes.data(), bytes.size());
      decode_raw(header_.schema, {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}, wanted, record,
                 {old.path(), static_cast<std::int64_t>(i), place.raw});
      const Page &raw = page_at(place.raw), &blob = page_at(place.blob);
      IndexRow row;
      row.row = static_cast<std::int64_t>(i);
      row.raw_page = raw.id;
      row.raw_start = static_cast<std::int64_t>(place.raw - header_.start_of(raw));
      row.raw_end = row.raw_start + static_cast<std::int64_t>(kLength + place.raw_bytes);
      row.group = blob.kind_id;
      row.blob_page = blob.id;
      row.blob_start = static_cast<std::int64_t>(place.blob - header_.start_of(blob));
      row.blob_end = row.blob_start + static_cast<std::int64_t>(kLength + place.blob_bytes);
      if (row.row < kept) {
        index_.add(row, index_fields(header_.schema, record));
        continue;
      }
      const auto offset = static_cast<std::int64_t>(raw_page->groups.back().offset);
      UNDERTOW_CHECK(raw.id == raw_page->id && row.raw_start >= offset, FormatError,
                     "{} is damaged: row {} lies outside of its row group", old.path(), i);
      row.raw_start -= offset;
      row.raw_end -= offset;
      waiting_.emplace_back(row, index_fields(header_.schema, record));
    }
    rows_ = static_cast<std::int64_t>(places.size());
    if (raw_page != pages.rend()) raw_page_ = index_of(&*raw_page);
    if (!goes_on) return;
    blob_page_ = index_of(&*blob_page);
    const std::uint64_t offset = raw_page->groups.back().offset;
    group_.resize(static_cast<std::size_t>(raw_page->used - offset));
    old.read(header_.start_of(*raw_page) + offset, group_.data(), group_.size());
    raw_page->groups.pop_back();
    raw_page->used = offset;
  }

  void finish(std::int64_t saved) {
    end_group();
    header_.saved = saved;
    const std::string bytes = write_header(header_);
    file_.write_at(0, bytes.data(), bytes.size());
    file_.finish();
    index_.finish();
  }
  void commit() {
    file_.commit();
    index_.commit();
  }

 private:
  std::string file_name() const { return fs::path(path_).filename().string(); }
  static void set_length(std::string& bytes) {
    const auto length = static_cast<std::uint64_t>(bytes.size()) - kLength;
    bytes.replace(0, kLength, reinterpret_cast<const char*>(&length), kLength);
  }
  int index_of(const Page* page) const { return static_cast<int>(page - header_.pages.data()); }
  Page& page(int index) { return header_.pages[static_cast<std::size_t>(index)]; }

  int new_page(bool blob) {
    Page p;
    p.blob = blob;
    for (const Page& other : header_.pages) {
      p.id = std::max(p.id, other.id + 1);
      if (other.blob == blob) p.kind_id = std::max(p.kind_id, other.kind_id + 1);
    }
    p.first = p.past = blob ? rows_ : 0;
    header_.pages.push_back(p);
    return static_cast<int>(header_.pages.size()) - 1;
  }

  /// Adds what stands in raw_ and blob_.
  void add(std::vector<Value> fields) {
    if (blob_page_ >= 0 &&
        (page(blob_page_).used + blob_.size() > header_.page_size || group_.size() + raw_.size() > header_.page_size))
      end_group();
    if (blob_page_ < 0) blob_page_ = new_page(true);
    Page& blob = page(blob_page_);
    IndexRow row;
    row.row = rows_++;
    row.raw_start = static_cast<std::int64_t>(group_.size());
    row.raw_end = row.raw_start + static_cast<std::int64_t>(raw_.size());
    row.group = blob.kind_id;
    row.blob_page = blob.id;
    row.blob_start = static_cast<std::int64_t>(blob.used);
    row.blob_end = row.blob_start + static_cast<std::int64_t>(blob_.size());
    waiting_.emplace_back(row, std::move(fields));
    group_ += raw_;
    unwritten_ += blob_;
    blob.used += blob_.size();
    blob.past = rows_;
    if (unwritten_.size() >= kFlush) flush();
  }

  void flush() {
    const Page& blob = page(blob_page_);
    file_.write_at(header_.start_of(blob) + blob.used - unwritten_.size(), unwritten_.data(), unwritten_.size());
    unwritten_.clear();
  }

  /// The raw parts of the group go to the raw page, all to the same one.
  void end_group() {
    if (blob_page_ < 0) return;
    flush();
    if (raw_page_ < 0 || page(raw_page_).used + group_.size() > header_.page_size) raw_page_ = new_page(false);
    Page& raw = page(raw_page_);
    raw.groups.push_back({page(blob_page_).kind_id, raw.used});
    file_.write_at(header_.start_of(raw) + raw.used, group_.data(), group_.size());
    for (auto& [row, fields] : waiting_) {
      row.raw_page = raw.id;
      row.raw_start += static_cast<std::int64_t>(raw.used);
      row.raw_end += static_cast<std::int64_t>(raw.used);
      index_.add(row, fields);
    }
    raw.used += group_.size();
    group_.clear();
    waiting_.clear();
    blob_page_ = -1;
  }

  std::string path_;
  Header header_;
  AtomicFile file_;
  IndexWriter index_;
  std::int64_t rows_ = 0;
  int blob_page_ = -1, raw_page_ = -1;                            // indices into the header's pages; -1: none open
  std::string raw_, blob_;                                        // of the row at hand
  std::string unwritten_;                                         // end of the open blob page
  std::string group_;                                             // raw parts of the rows of the open blob page
  std::vector<std::pair<IndexRow, std::vector<Value>>> waiting_;  // of the same; raw offsets within the group
};

void check_size(std::int64_t bytes, std::uint64_t least, std::uint64_t most, const char* what) {
  UNDERTOW_CHECK(
      bytes >= static_cast<std::int64_t>(least) && bytes <= static_cast<std::int64_t>(most) && bytes % 4 == 0,
      ValueError, "{} must be a multiple of 4 in [{}, {}], got {}", what, least, most, bytes);
}

}  // namespace

struct Writer::Impl {
  std::vector<std::string> paths;
  Header header;
  bool has_schema = false, committed = false, failed = false;
  std::vector<std::unique_ptr<Shard>> shards;  // made with the first row

  void open() {
    UNDERTOW_CHECK(!committed, RuntimeError, "{} was committed; nothing can be written to it any more", paths[0]);
    UNDERTOW_CHECK(!failed, RuntimeError, "{}: writing failed before, so that nothing more can be written; start anew",
                   paths[0]);
    UNDERTOW_CHECK(has_schema, RuntimeError, "{} needs a schema before rows can be written", paths[0]);
    if (!shards.empty()) return;
    Schema& schema = header.schema;
    if (schema.index.empty())
      for (const Field& f : schema.fields)
        if (!f.is_blob()) schema.index.push_back(f.name);
    or_give_up([&] {
      for (std::size_t i = 0; i < paths.size(); ++i) {
        header.shard = static_cast<std::int64_t>(i);
        shards.push_back(std::make_unique<Shard>(paths[i], header));
      }
    });
  }

  /// What touches the disk. Rows that are half written cannot be taken back: the files of this writer go at once.
  template <typename Write>
  void or_give_up(Write write) {
    try {
      write();
    } catch (...) {
      shards.clear();
      failed = true;
      throw;
    }
  }

  void check(std::span<const Record> records) const {
    std::string bytes;
    for (std::size_t i = 0; i < records.size(); ++i) {
      const std::string where = fmt::format("row {} of those to be written", i);
      check_record(header.schema, records[i], where);
      for (const bool blob : {false, true}) {
        // An upper bound is enough to pass; only what comes near a page is encoded to know.
        std::size_t bound = 64 + 12 * header.schema.fields.size();
        for (std::size_t k = 0; k < records[i].size(); ++k) {
          if (const auto* text = std::get_if<std::string>(&records[i][k])) bound += text->size();
          else if (const auto* t = std::get_if<Tensor>(&records[i][k])) bound += t->nbytes() + t->nbytes() / 8;
          bound += header.schema.fields[k].name.size();
        }
        if (bound <= header.page_size) break;
        bytes.clear();
        if (blob) encode_blob(header.schema, records[i], bytes);
        else encode_raw(header.schema, records[i], bytes);
        UNDERTOW_CHECK(bytes.size() + kLength <= header.page_size, ValueError,
                       "{} takes {} bytes, more than a page of {}; set a larger page_size", where,
                       bytes.size() + kLength, header.page_size);
      }
    }
  }

  void write_to(std::size_t shard, std::span<const Record> records) {
    for (const Record& r : records) shards[shard]->add(header.schema, r);
  }
};

Writer::Writer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Writer::Writer(const std::string& path, int shards, bool overwrite) : impl_(std::make_unique<Impl>()) {
  UNDERTOW_CHECK(shards >= 1 && shards <= kMostShards, ValueError, "shard_num must be in [1, {}], got {}", kMostShards,
                 shards);
  const std::string name = fs::path(path).filename().string();
  UNDERTOW_CHECK(!name.empty() && name.find_first_of(kNotInNames) == std::string::npos, ValueError,
                 "'{}' is no name for a MindRecord file: it may not hold any of {}", path, kNotInNames);
  const std::size_t width = std::to_string(shards - 1).size();
  for (int i = 0; i < shards; ++i) {
    impl_->paths.push_back(shards == 1 ? path : fmt::format("{}{:0{}}", path, i, width));
    impl_->header.shards.push_back(fs::path(impl_->paths.back()).filename().string());
    for (const char* ending : {"", ".db"})
      UNDERTOW_CHECK(overwrite || !fs::exists(impl_->paths.back() + ending), FileError,
                     "{}{} exists already; give overwrite=True to replace it", impl_->paths.back(), ending);
  }
}

std::unique_ptr<Writer> Writer::append(const std::string& path) {
  const InputFile old(path);
  auto impl = std::make_unique<Impl>();
  impl->header = read_header(old);
  UNDERTOW_CHECK(impl->header.shards.size() == 1, ValueError,
                 "{} is one of {} files; rows can be appended to a file that stands alone", path,
                 impl->header.shards.size());
  impl->header.shards = {fs::path(path).filename().string()};  // it may have been renamed
  impl->paths = {path};
  impl->has_schema = true;
  impl->shards.push_back(std::make_unique<Shard>(path, impl->header));
  impl->shards[0]->take_over(old);
  return std::unique_ptr<Writer>(new Writer(std::move(impl)));
}

Writer::~Writer() = default;

void Writer::set_header_size(std::int64_t bytes) {
  check_size(bytes, kLeastHeader, kMostHeader, "header_size");
  UNDERTOW_CHECK(impl_->shards.empty(), RuntimeError, "header_size cannot change once there are rows");
  impl_->header.header_size = static_cast<std::uint64_t>(bytes);
}

void Writer::set_page_size(std::int64_t bytes) {
  check_size(bytes, kLeastPage, kMostPage, "page_size");
  UNDERTOW_CHECK(impl_->shards.empty(), RuntimeError, "page_size cannot change once there are rows");
  impl_->header.page_size = static_cast<std::uint64_t>(bytes);
}

void Writer::set_schema(Schema schema) {
  UNDERTOW_CHECK(impl_->shards.empty(), RuntimeError, "the schema cannot change once there are rows");
  schema.check();
  impl_->header.schema = std::move(schema);
  impl_->has_schema = true;
}

const Schema& Writer::schema() const { return impl_->header.schema; }
int Writer::shards() const { return static_cast<int>(impl_->paths.size()); }

std::int64_t Writer::rows() const {
  std::int64_t rows = 0;
  for (const auto& shard : impl_->shards) rows += shard->rows();
  return rows;
}

void Writer::write(std::span<const Record> records) {
  Impl& m = *impl_;
  m.open();
  m.check(records);
  // Rows each shard is to have, the first ones one more, and with them the part of this call.
  const auto shards = static_cast<std::int64_t>(m.shards.size());
  const std::int64_t total = rows() + static_cast<std::int64_t>(records.size());
  std::vector<std::int64_t> part(m.shards.size(), 0);
  std::int64_t given = 0;
  for (std::int64_t i = 0; i < shards; ++i) {
    const std::int64_t wanted = total / shards + (i < total % shards ? 1 : 0);
    auto& p = part[static_cast<std::size_t>(i)];
    p = std::clamp<std::int64_t>(wanted - m.shards[static_cast<std::size_t>(i)]->rows(), 0,
                                 static_cast<std::int64_t>(records.size()) - given);
    given += p;
  }
  part.back() += static_cast<std::int64_t>(records.size()) - given;  // after write_to() shards may be uneven
  std::size_t at = 0;
  m.or_give_up([&] {
    for (std::size_t i = 0; i < part.size(); ++i) {
      m.write_to(i, records.subspan(at, static_cast<std::size_t>(part[i])));
      at += static_cast<std::size_t>(part[i]);
    }
  });
}

void Writer::write_to(int shard, std::span<const Record> records) {
  UNDERTOW_CHECK(shard >= 0 && shard < shards(), IndexError, "there is no shard {} among {}", shard, shards());
  impl_->open();
  impl_->check(records);
  impl_->or_give_up([&] { impl_->write_to(static_cast<std::size_t>(shard), records); });
}

void Writer::commit() {
  Impl& m = *impl_;
  m.open();
  std::int64_t saved = 0;
  for (const auto& shard : m.shards) saved += shard->header().saved;
  m.or_give_up([&] {
    for (const auto& shard : m.shards) shard->finish(saved);
  });
  // A set of several files cannot be replaced at once. Without the old ones, an interruption leaves a set that lacks a
  // file, which readers notice, and never one of old and new files.
  if (m.paths.size() > 1)
    for (const std::string& path : m.paths) std::remove(path.c_str());
  for (const auto& shard : m.shards) shard->commit();
  m.committed = true;
}

}  // namespace undertow::formats::mindrecord
