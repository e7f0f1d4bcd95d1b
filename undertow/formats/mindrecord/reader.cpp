// SPDX-License-Identifier: Apache-2.0
#include "undertow/formats/mindrecord/reader.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>

#include "undertow/base/check.h"
#include "undertow/formats/mindrecord/header.h"
#include "undertow/formats/mindrecord/index.h"

namespace undertow::formats::mindrecord {
namespace {

namespace fs = std::filesystem;

std::string digits_at_end(const std::string& name) { return name.substr(name.find_last_not_of("0123456789") + 1); }

/// What an interrupted write has left beside a file that is not there.
std::string leftover_of(const fs::path& path) {
  std::error_code ignored;
  const std::string prefix = path.filename().string() + ".tmp";
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (entry.path().filename().string().starts_with(prefix))
      return fmt::format("; '{}' is what an interrupted write has left", entry.path().filename().string());
  return "";
}

struct DataFile {
  explicit DataFile(const std::string& path) : input(path), header(read_header(input)) {}
  InputFile input;
  Header header;
  std::vector<Place> places;
};

std::unique_ptr<DataFile> open_file(const std::string& path) {
  std::error_code ignored;
  UNDERTOW_CHECK(fs::exists(path, ignored), FileError, "there is no MindRecord file '{}'{}", path, leftover_of(path));
  return std::make_unique<DataFile>(path);
}

/// The paths of the file's set. Where it was renamed, the others are expected to have been renamed alike.
std::vector<std::string> siblings_of(const std::string& path, const Header& header) {
  if (header.shards.size() == 1) return {path};
  const fs::path folder = fs::path(path).parent_path();
  const std::string name = fs::path(path).filename().string();
  const std::string& own = header.shards[static_cast<std::size_t>(header.shard)];
  const std::string number = digits_at_end(own);
  const bool renamed = name != own;
  UNDERTOW_CHECK(!renamed || (!number.empty() && name.ends_with(number)), FileError,
                 "{} was '{}', number {} of {} files, and its new name does not tell those of the others; give all of "
                 "them as a list",
                 path, own, header.shard + 1, header.shards.size());
  std::vector<std::string> paths;
  for (const std::string& shard : header.shards)
    paths.push_back(
        (folder / (renamed ? name.substr(0, name.size() - number.size()) + digits_at_end(shard) : shard)).string());
  return paths;
}

/// Writes the index anew, as far as that is possible; reading does not need it.
void rebuild_index(const DataFile& file) {
  const std::string& path = file.input.path();
  try {
    const Header& h = file.header;
    std::vector<bool> wanted(h.schema.fields.size(), false);
    for (const std::string& name : h.schema.index) wanted[static_cast<std::size_t>(h.schema.find(name))] = true;
    IndexWriter index(path + ".db", fs::path(path).filename().string(), h.schema);
    auto page_of = [&, last = std::array<const Page*, 2>{}](std::uint64_t at) mutable -> const Page& {
      const auto holds = [&](const Page& p) { return at >= h.start_of(p) && at - h.start_of(p) < h.page_size; };
      for (const Page* p : last)
        if (p && holds(*p)) return *p;
      const Page& found = *std::ranges::find_if(h.pages, holds);
      return *(last[found.blob] = &found);
    };
    std::string bytes;
    for (std::size_t i = 0; i < file.places.size(); ++i) {
      const Place& p = file.places[i];
      Record record(h.schema.fields.size());
      bytes.resize(p.raw_bytes);
      file.input.read(p.raw + kLength, bytes.data(), bytes.size());
      decode_raw(h.schema, {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}, wanted, record,
                 {path, static_cast<std::int64_t>(i), p.raw});
      const Page &raw = page_of(p.raw), &blob = page_of(p.blob);
      const auto raw_start = static_cast<std::int64_t>(p.raw - h.start_of(raw));
      const auto blob_start = static_cast<std::int64_t>(p.blob - h.start_of(blob));
      index.add({static_cast<std::int64_t>(i), raw.id, raw_start,
                 raw_start + static_cast<std::int64_t>(kLength + p.raw_bytes), blob.kind_id, blob.id, blob_start,
                 blob_start + static_cast<std::int64_t>(kLength + p.blob_bytes)},
                index_fields(h.schema, record));
    }
    index.commit();
  } catch (const FileError&) {
    // The folder cannot be written: the rows are found without it.
  }
}

}  // namespace

struct Reader::Impl {
  std::vector<std::unique_ptr<DataFile>> files;
  std::vector<std::string> paths;
  std::vector<std::int64_t> rows, ends;  // of each file; rows up to its end
};

Reader::Reader(const std::vector<std::string>& paths, bool siblings) : impl_(std::make_unique<Impl>()) {
  UNDERTOW_CHECK(!paths.empty(), ValueError, "no MindRecord file is given");
  Impl& m = *impl_;
  m.paths = paths;
  std::unique_ptr<DataFile> first = open_file(paths[0]);
  if (siblings && paths.size() == 1) m.paths = siblings_of(paths[0], first->header);
  std::int64_t end = 0;
  for (const std::string& path : m.paths) {
    std::unique_ptr<DataFile> file = first && path == paths[0] ? std::move(first) : open_file(path);
    const Schema& schema = file->header.schema;
    if (!m.files.empty()) {
      const Schema& wanted = m.files[0]->header.schema;
      const bool same = std::ranges::equal(schema.fields, wanted.fields, [](const Field& a, const Field& b) {
        return a.name == b.name && a.type == b.type && a.shape == b.shape;
      });
      UNDERTOW_CHECK(same, FormatError, "{} and {} have different schemas", m.paths[0], path);
    }
    if (auto places = read_index(path + ".db", file->input, file->header)) {
      file->places = std::move(*places);
    } else {
      file->places = scan(file->input, file->header);
      rebuild_index(*file);
    }
    m.rows.push_back(static_cast<std::int64_t>(file->places.size()));
    m.ends.push_back(end += m.rows.back());
    m.files.push_back(std::move(file));
  }
}

Reader::~Reader() = default;

const Schema& Reader::schema() const { return impl_->files[0]->header.schema; }
std::int64_t Reader::rows() const { return impl_->ends.back(); }
const std::vector<std::string>& Reader::files() const { return impl_->paths; }
const std::vector<std::int64_t>& Reader::file_rows() const { return impl_->rows; }

void Reader::read(std::int64_t row, const std::vector<bool>& wanted, Record& record) const {
  const Impl& m = *impl_;
  UNDERTOW_CHECK(row >= 0 && row < rows(), IndexError, "there is no row {} among the {} of {}", row, rows(),
                 m.paths[0]);
  const auto which = static_cast<std::size_t>(std::ranges::upper_bound(m.ends, row) - m.ends.begin());
  const DataFile& file = *m.files[which];
  const std::int64_t local = row - (m.ends[which] - m.rows[which]);
  const Place& place = file.places[static_cast<std::size_t>(local)];
  const Schema& schema = this->schema();
  record.resize(schema.fields.size());
  bool raw = false, blob = false;
  for (std::size_t i = 0; i < wanted.size(); ++i) (schema.fields[i].is_blob() ? blob : raw) |= wanted[i];

  const auto origin = [&](std::uint64_t at) { return Origin{file.input.path(), local, at}; };
  const auto check_length = [&](std::uint64_t length, std::uint64_t at, std::uint32_t bytes) {
    UNDERTOW_CHECK(length == bytes, FormatError, "{} is damaged: the record says {} bytes, its index {}",
                   origin(at).str(), length, bytes);
  };
  thread_local std::vector<std::uint8_t> room;
  const auto load = [&](std::uint64_t at, std::uint32_t bytes) {
    if (room.size() < bytes + kLength) room.resize(bytes + kLength);
    file.input.read(at, room.data(), bytes + kLength);
    std::uint64_t length = 0;
    std::memcpy(&length, room.data(), kLength);
    check_length(length, at, bytes);
    return std::span<const std::uint8_t>(room.data() + kLength, bytes);
  };
  if (raw) decode_raw(schema, load(place.raw, place.raw_bytes), wanted, record, origin(place.raw));
  if (!blob) return;
  if (schema.blobs() == 1) {
    const auto only =
        static_cast<std::size_t>(std::ranges::find_if(schema.fields, &Field::is_blob) - schema.fields.begin());
    if (schema.fields[only].type == FieldType::kBytes) {  // straight into its tensor
      std::uint64_t length = 0;
      file.input.read(place.blob, &length, kLength);
      check_length(length, place.blob, place.blob_bytes);
      Tensor bytes(DType::kUInt8, {static_cast<std::int64_t>(place.blob_bytes)});
      if (place.blob_bytes) file.input.read(place.blob + kLength, bytes.data(), place.blob_bytes);
      record[only] = std::move(bytes);
      return;
    }
  }
  decode_blob(schema, load(place.blob, place.blob_bytes), wanted, record, origin(place.blob));
}

Record Reader::read(std::int64_t row) const {
  Record record;
  read(row, std::vector<bool>(schema().fields.size(), true), record);
  return record;
}

}  // namespace undertow::formats::mindrecord
