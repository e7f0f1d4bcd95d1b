// SPDX-License-Identifier: Apache-2.0
#include "undertow/formats/mindrecord/index.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>

#include "undertow/base/check.h"

namespace undertow::formats::mindrecord {
namespace {

using Database = std::unique_ptr<sqlite3, int (*)(sqlite3*)>;
using Statement = std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)>;

constexpr int kRowColumns = 8;

const char* sql_type(FieldType type) {
  switch (type) {
    case FieldType::kInt32:
    case FieldType::kInt64: return "INTEGER";
    case FieldType::kFloat32:
    case FieldType::kFloat64: return "REAL";
    default: return "TEXT";
  }
}

Database open_database(const std::string& path, int flags) {
  sqlite3* raw = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &raw, flags, nullptr);
  Database db(raw, sqlite3_close);
  if (code != SQLITE_OK) db.reset();
  return db;
}

Statement prepare(sqlite3* db, const std::string& sql) {
  sqlite3_stmt* raw = nullptr;
  sqlite3_prepare_v2(db, sql.c_str(), -1, &raw, nullptr);
  return {raw, sqlite3_finalize};
}

}  // namespace

struct IndexWriter::Impl {
  std::string path, temporary;
  Database db{nullptr, sqlite3_close};
  Statement insert{nullptr, sqlite3_finalize};
  bool finished = false;

  void check(bool ok) const {
    UNDERTOW_CHECK(ok, FileError, "{} cannot be written: {}", path,
                   db ? sqlite3_errmsg(db.get()) : "it cannot be made");
  }
  void run(const std::string& sql) const {
    check(sqlite3_exec(db.get(), sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK);
  }
};

IndexWriter::IndexWriter(std::string path, const std::string& data_name, const Schema& schema)
    : impl_(std::make_unique<Impl>()) {
  static std::atomic<unsigned> count{0};
  Impl& i = *impl_;
  i.path = std::move(path);
  i.temporary = fmt::format("{}.tmp{}-{}", i.path, ::getpid(), count++);
  ::unlink(i.temporary.c_str());  // of a process of the same number that was killed
  i.db = open_database(i.temporary, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
  i.check(static_cast<bool>(i.db));
  // The file counts only once it has its name, so that SQLite need not keep it whole on the way.
  i.run("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;");
  std::string columns, key = "ROW_ID", marks = "?";
  for (int k = 1; k < kRowColumns; ++k) marks += ",?";
  for (std::size_t k = 0; k < schema.index.size(); ++k) {
    const Field& f = schema.fields[static_cast<std::size_t>(schema.find(schema.index[k]))];
    columns += fmt::format(", INC_{} INT, {}_0 {}", k, f.name, sql_type(f.type));
    key += fmt::format(",INC_{}", k);
    marks += ",0,?";
  }
  i.run(
      "CREATE TABLE INDEXES( ROW_ID INT NOT NULL, PAGE_ID_RAW INT NOT NULL, PAGE_OFFSET_RAW INT NOT NULL, "
      "PAGE_OFFSET_RAW_END INT NOT NULL, ROW_GROUP_ID INT NOT NULL, PAGE_ID_BLOB INT NOT NULL, "
      "PAGE_OFFSET_BLOB INT NOT NULL, PAGE_OFFSET_BLOB_END INT NOT NULL" +
      columns + ", PRIMARY KEY(" + key + "));" + "CREATE TABLE SHARD_NAME(NAME TEXT NOT NULL);");
  const Statement name = prepare(i.db.get(), "INSERT INTO SHARD_NAME VALUES(?)");
  i.check(name && sqlite3_bind_text(name.get(), 1, data_name.c_str(), -1, SQLITE_TRANSIENT) == SQLITE_OK &&
          sqlite3_step(name.get()) == SQLITE_DONE);
  i.run("BEGIN");
  i.insert = prepare(i.db.get(), "INSERT INTO INDEXES VALUES(" + marks + ")");
  i.check(static_cast<bool>(i.insert));
}

IndexWriter::~IndexWriter() {
  impl_->insert.reset();
  impl_->db.reset();
  if (!impl_->temporary.empty()) ::unlink(impl_->temporary.c_str());
}

void IndexWriter::add(const IndexRow& r, const std::vector<Value>& fields) {
  sqlite3_stmt* s = impl_->insert.get();
  int at = 0;
  for (const std::int64_t v :
       {r.row, r.raw_page, r.raw_start, r.raw_end, r.group, r.blob_page, r.blob_start, r.blob_end})
    sqlite3_bind_int64(s, ++at, v);
  for (const Value& v : fields) {
    ++at;
    if (const auto* n = std::get_if<std::int64_t>(&v)) sqlite3_bind_int64(s, at, *n);
    else if (const auto* x = std::get_if<double>(&v)) sqlite3_bind_double(s, at, *x);
    else if (const auto* text = std::get_if<std::string>(&v))
      sqlite3_bind_text64(s, at, text->data(), text->size(), SQLITE_STATIC, SQLITE_UTF8);
  }
  const int code = sqlite3_step(s);
  sqlite3_reset(s);
  impl_->check(code == SQLITE_DONE);
}

void IndexWriter::finish() {
  Impl& i = *impl_;
  if (i.finished) return;
  i.insert.reset();
  i.run("COMMIT");
  i.check(sqlite3_close(i.db.get()) == SQLITE_OK);
  (void)i.db.release();
  const int fd = ::open(i.temporary.c_str(), O_RDONLY | O_CLOEXEC);
  const bool written = fd >= 0 && ::fsync(fd) == 0;
  if (fd >= 0) ::close(fd);
  UNDERTOW_CHECK(written, FileError, "{} could not be written to the disk: {}", i.path, std::strerror(errno));
  i.finished = true;
}

void IndexWriter::commit() {
  finish();
  UNDERTOW_CHECK(std::rename(impl_->temporary.c_str(), impl_->path.c_str()) == 0, FileError,
                 "{} could not take its name: {}", impl_->path, std::strerror(errno));
  impl_->temporary.clear();
}

std::optional<std::vector<Place>> read_index(const std::string& path, const InputFile& file, const Header& header) {
  if (::access(path.c_str(), R_OK) != 0) return std::nullopt;
  const Database db = open_database(path, SQLITE_OPEN_READONLY);
  if (!db) return std::nullopt;
  const Statement select = prepare(
      db.get(),
      "SELECT ROW_ID, PAGE_ID_RAW, PAGE_OFFSET_RAW, PAGE_OFFSET_RAW_END, ROW_GROUP_ID, PAGE_ID_BLOB, PAGE_OFFSET_BLOB, "
      "PAGE_OFFSET_BLOB_END FROM INDEXES ORDER BY ROW_ID");
  if (!select) return std::nullopt;
  std::map<std::int64_t, const Page*> pages;
  for (const Page& p : header.pages) pages[p.id] = &p;
  std::vector<Place> places;
  places.reserve(static_cast<std::size_t>(header.rows()));
  int code;
  while ((code = sqlite3_step(select.get())) == SQLITE_ROW) {
    std::int64_t v[kRowColumns];
    for (int k = 0; k < kRowColumns; ++k) v[k] = sqlite3_column_int64(select.get(), k);
    const auto inside = [&](std::int64_t page, std::int64_t start, std::int64_t end, bool blob) {
      const auto it = pages.find(page);
      return it != pages.end() && it->second->blob == blob && start >= 0 &&
             end - start >= static_cast<std::int64_t>(kLength) && end <= static_cast<std::int64_t>(it->second->used);
    };
    if (v[0] != static_cast<std::int64_t>(places.size()) || v[0] >= header.rows()) return std::nullopt;
    if (!inside(v[1], v[2], v[3], false) || !inside(v[5], v[6], v[7], true)) return std::nullopt;
    places.push_back({header.start_of(*pages[v[1]]) + static_cast<std::uint64_t>(v[2]),
                      header.start_of(*pages[v[5]]) + static_cast<std::uint64_t>(v[6]),
                      static_cast<std::uint32_t>(v[3] - v[2]) - static_cast<std::uint32_t>(kLength),
                      static_cast<std::uint32_t>(v[7] - v[6]) - static_cast<std::uint32_t>(kLength)});
  }
  if (code != SQLITE_DONE || static_cast<std::int64_t>(places.size()) != header.rows()) return std::nullopt;
  // The lengths that some rows begin with tell whether the index is of this file as it is now.
  for (std::size_t i = 0; i < places.size(); i += std::max<std::size_t>(places.size() / 16, 1))
    for (const auto& [at, bytes] :
         {std::pair(places[i].raw, places[i].raw_bytes), {places[i].blob, places[i].blob_bytes}}) {
      std::uint64_t length = 0;
      file.read(at, &length, kLength);
      if (length != bytes) return std::nullopt;
    }
  return places;
}

std::vector<Value> index_fields(const Schema& schema, const Record& record) {
  std::vector<Value> fields;
  for (const std::string& name : schema.index) fields.push_back(record[static_cast<std::size_t>(schema.find(name))]);
  return fields;
}

}  // namespace undertow::formats::mindrecord
