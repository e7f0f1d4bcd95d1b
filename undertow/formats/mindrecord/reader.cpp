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
  int bytes_field = -1;

  struct Found {
    const DataFile& file;
    std::int64_t local;
    const Place& place;

    [[noreturn]] void fail(std::uint64_t at, std::uint64_t length, std::uint32_t bytes) const {
      throw FormatError(fmt::format("{} is damaged: the record says {} bytes, its index {}",
                                    Origin{file.input.path(), local, at}.str(), length, bytes));
    }
  };
  Found find(std::int64_t row) const {
    const auto which = static_cast<std::size_t>(std::ranges::upper_bound(ends, row) - ends.begin());
    const std::int64_t local = row - (ends[which] - rows[which]);
    return {*files[which], local, files[which]->places[static_cast<std::size_t>(local)]};
  }
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
  const std::vector<Field>& fields = schema().fields;
  const auto only = std::ranges::find_if(fields, &Field::is_blob);
  if (schema().blobs() == 1 && only->type == FieldType::kBytes) m.bytes_field = static_cast<int>(only - fields.begin());
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
  const Impl::Found found = m.find(row);
  const auto& [file, local, place] = found;
  const Schema& schema = this->schema();
  record.resize(schema.fields.size());
  bool raw = false, blob = false;
  for (std::size_t i = 0; i < wanted.size(); ++i) (schema.fields[i].is_blob() ? blob : raw) |= wanted[i];

  const auto origin = [&](std::uint64_t at) { return Origin{found.file.input.path(), found.local, at}; };
  thread_local std::vector<std::uint8_t> room;
  const auto load = [&](std::uint64_t at, std::uint32_t bytes) {
    if (room.size() < bytes + kLength) room.resize(bytes + kLength);
    found.file.input.read(at, room.data(), bytes + kLength);
    std::uint64_t length = 0;
    std::memcpy(&length, room.data(), kLength);
    if (length != bytes) found.fail(at, length, bytes);
    return std::span<const std::uint8_t>(room.data() + kLength, bytes);
  };
  if (raw) decode_raw(schema, load(place.raw, place.raw_bytes), wanted, record, origin(place.raw));
  if (!blob) return;
  if (m.bytes_field >= 0) {  // straight into its tensor
    Tensor bytes(DType::kUInt8, {static_cast<std::int64_t>(place.blob_bytes)});
    read_bytes(row, bytes.data());
    record[static_cast<std::size_t>(m.bytes_field)] = std::move(bytes);
    return;
  }
  decode_blob(schema, load(place.blob, place.blob_bytes), wanted, record, origin(place.blob));
}

int Reader::bytes_field() const { return impl_->bytes_field; }
std::size_t Reader::bytes_in(std::int64_t row) const { return impl_->find(row).place.blob_bytes; }

void Reader::read_bytes(std::int64_t row, void* out) const {
  const Impl::Found found = impl_->find(row);
  const Place& place = found.place;
  std::uint64_t length = 0;
  found.file.input.read(place.blob, &length, kLength, out, place.blob_bytes);
  if (length != place.blob_bytes) found.fail(place.blob, length, place.blob_bytes);
}

Record Reader::read(std::int64_t row) const {
  Record record;
  read(row, std::vector<bool>(schema().fields.size(), true), record);
  return record;
}

}  // namespace undertow::formats::mindrecord
