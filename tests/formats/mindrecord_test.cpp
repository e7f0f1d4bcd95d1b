// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "undertow/formats/mindrecord/reader.h"
#include "undertow/formats/mindrecord/writer.h"

namespace undertow::formats::mindrecord {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class MindRecordTest : public ::testing::Test {
 protected:
  void SetUp() override {
    dir_ = fs::temp_directory_path() /
           (std::string("undertow_mr_") + ::testing::UnitTest::GetInstance()->current_test_info()->name() +
            std::to_string(getpid()));
    fs::create_directories(dir_);
  }
  void TearDown() override { fs::remove_all(dir_); }
  std::string path(const std::string& name = "a.mindrecord") const { return (dir_ / name).string(); }
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const auto& e : fs::directory_iterator(dir_)) out.push_back(e.path().filename().string());
    std::ranges::sort(out);
    return out;
  }
  static std::string load(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static void store(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }

  static Schema schema() {
    Schema s;
    s.description = "of a test";
    s.fields = {{"text", FieldType::kString, {}},    {"i32", FieldType::kInt32, {}},
                {"i64", FieldType::kInt64, {}},      {"f32", FieldType::kFloat32, {}},
                {"f64", FieldType::kFloat64, {}},    {"data", FieldType::kBytes, {}},
                {"a32", FieldType::kInt32, {{-1}}},  {"a64", FieldType::kInt64, {{2, -1}}},
                {"x32", FieldType::kFloat32, {{3}}}, {"x64", FieldType::kFloat64, {{-1, 2}}}};
    return s;
  }
  static Tensor bytes_of(const std::string& text) {
    return Tensor(std::span<const std::uint8_t>(reinterpret_cast<const std::uint8_t*>(text.data()), text.size()));
  }
  /// In the order of the fields' names: a32, a64, data, f32, f64, i32, i64, text, x32, x64.
  static Record record(std::int64_t i) {
    const std::vector<std::int32_t> a32(static_cast<std::size_t>(i % 5), static_cast<std::int32_t>(-1000000 * i));
    const std::vector<std::int64_t> a64{i, -i, std::int64_t{1} << (i % 63), -(std::int64_t{1} << (i % 63))};
    return {Tensor(a32),
            Tensor(a64, {2, 2}),
            bytes_of(std::string(static_cast<std::size_t>(i * 37 % 100), static_cast<char>(i))),
            static_cast<double>(static_cast<float>(i) * 0.1f),
            static_cast<double>(i) * 0.1,
            std::int64_t{i - 4},
            std::int64_t{1} << 40,
            "text \u4e2d " + std::to_string(i),
            Tensor({1.f, static_cast<float>(i), -0.f}),
            Tensor(std::vector<double>(static_cast<std::size_t>(2 * (i % 3)), 0.5), {i % 3, 2})};
  }
  static std::vector<Record> records(std::int64_t n, std::int64_t from = 0) {
    std::vector<Record> out;
    for (std::int64_t i = 0; i < n; ++i) out.push_back(record(from + i));
    return out;
  }
  static void expect_equal(const Record& a, const Record& b) {
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      ASSERT_EQ(a[i].index(), b[i].index()) << i;
      const auto* t = std::get_if<Tensor>(&a[i]);
      if (!t) {
        if (a[i].index() == 0) EXPECT_EQ(std::get<0>(a[i]), std::get<0>(b[i])) << i;
        if (a[i].index() == 1) EXPECT_EQ(std::get<1>(a[i]), std::get<1>(b[i])) << i;
        if (a[i].index() == 2) EXPECT_EQ(std::get<2>(a[i]), std::get<2>(b[i])) << i;
        continue;
      }
      const Tensor& u = std::get<Tensor>(b[i]);
      ASSERT_EQ(t->shape(), u.shape()) << i;
      ASSERT_EQ(t->dtype(), u.dtype()) << i;
      EXPECT_TRUE(t->nbytes() == 0 || std::memcmp(t->data(), u.data(), t->nbytes()) == 0) << i;
    }
  }
  void write(const std::string& path, int shards, std::int64_t rows, std::int64_t at_once, bool overwrite = false) {
    Writer w(path, shards, overwrite);
    w.set_header_size(16 << 10);
    w.set_page_size(32 << 10);
    w.set_schema(schema());
    for (std::int64_t i = 0; i < rows; i += at_once) w.write(records(std::min(at_once, rows - i), i));
    w.commit();
  }

  fs::path dir_;
};

TEST_F(MindRecordTest, RowsComeBackAsTheyWereWritten) {
  write(path(), 1, 500, 97);  // several pages
  EXPECT_THAT(names(), ::testing::ElementsAre("a.mindrecord", "a.mindrecord.db"));
  for (const bool index : {true, false}) {
    if (!index) fs::remove(path() + ".db");
    const Reader r({path()});
    ASSERT_EQ(r.rows(), 500);
    EXPECT_EQ(r.schema().description, "of a test");
    for (std::int64_t i = 0; i < 500; ++i) expect_equal(r.read(i), record(i));
    EXPECT_TRUE(fs::exists(path() + ".db"));
    EXPECT_THROW(r.read(500), IndexError);
  }
}

TEST_F(MindRecordTest, ShardsAreFilledEvenly) {
  for (const std::int64_t at_once : {1, 2, 13}) {
    write(path(), 4, 13, at_once, true);
    const Reader r({path("a.mindrecord0")});
    EXPECT_EQ(r.file_rows(), (std::vector<std::int64_t>{4, 3, 3, 3})) << at_once;
    std::vector<std::int64_t> labels;
    for (std::int64_t i = 0; i < 13; ++i) labels.push_back(std::get<std::int64_t>(r.read(i)[5]) + 4);
    if (at_once == 13) EXPECT_TRUE(std::ranges::is_sorted(labels));
    std::ranges::sort(labels);
    for (std::int64_t i = 0; i < 13; ++i) EXPECT_EQ(labels[static_cast<std::size_t>(i)], i);
  }
  write(path("b"), 3, 2, 1);  // one of them is empty
  EXPECT_EQ(Reader({path("b0")}).file_rows(), (std::vector<std::int64_t>{1, 1, 0}));
  write(path("c"), 1, 0, 1);
  EXPECT_EQ(Reader({path("c")}).rows(), 0);
}

TEST_F(MindRecordTest, FilesOfMindSpore) {
  const std::string data = std::string(UNDERTOW_TEST_DATA) + "/mindrecord/";
  for (const char* name : {"small1.mindrecord", "smallpages.mindrecord", "small4.mindrecord0", "small4.mindrecord1",
                           "small4.mindrecord2", "small4.mindrecord3"})
    for (const char* ending : {"", ".db"}) fs::copy_file(data + name + ending, path(std::string(name) + ending));
  const Reader one({path("small1.mindrecord")}), four({path("small4.mindrecord2")}),
      part({path("small4.mindrecord2")}, false);
  EXPECT_EQ(one.rows(), 10);
  EXPECT_EQ(four.rows(), 22);
  EXPECT_EQ(part.rows(), 5);
  EXPECT_EQ(Reader({path("smallpages.mindrecord")}).rows(), 12);
  const int name = one.schema().find("file_name");
  EXPECT_EQ(std::get<std::string>(one.read(3)[static_cast<std::size_t>(name)]), "img_003.jpg");
  // Written again from what was read, data and header are the same bytes.
  Writer w(path("copy"), 1);
  w.set_header_size(16 << 10);
  w.set_page_size(32 << 10);
  w.set_schema(one.schema());
  std::vector<Record> all;
  for (std::int64_t i = 0; i < 10; ++i) all.push_back(one.read(i));
  w.write(all);
  w.commit();
  std::string theirs = load(path("small1.mindrecord")), ours = load(path("copy"));
  const auto at = theirs.find("\"shard_addresses\":[\"small1.mindrecord\"]");
  ASSERT_NE(at, std::string::npos);
  EXPECT_EQ(ours.substr(8, at - 8), theirs.substr(8, at - 8));
  EXPECT_EQ(ours.substr(16 << 10), theirs.substr(16 << 10));
}

TEST_F(MindRecordTest, AppendedRowsFollow) {
  write(path(), 1, 7, 7);
  for (int k = 1; k < 40; ++k) {
    const auto w = Writer::append(path());
    w->write(records(7, 7 * k));
    w->commit();
  }
  const Reader r({path()});
  ASSERT_EQ(r.rows(), 280);
  for (std::int64_t i = 0; i < 280; ++i) expect_equal(r.read(i), record(i));
  EXPECT_LT(fs::file_size(path()), 6u * (32 << 10));  // pages are filled up
}

TEST_F(MindRecordTest, RenamedMissingAndForeignFiles) {
  write(path("x"), 3, 9, 9);
  for (const char* n : {"0", "1", "2"}) fs::rename(path(std::string("x") + n), path(std::string("y") + n));
  EXPECT_EQ(Reader({path("y1")}).rows(), 9);
  fs::remove(path("y2"));
  EXPECT_THAT([&] { Reader({path("y0")}); }, ThrowsMessage<FileError>(HasSubstr("y2")));
  EXPECT_EQ(Reader({path("y0"), path("y1")}).rows(), 6);
  // An index of another file.
  write(path("a"), 1, 4, 4);
  write(path("b"), 1, 5, 5);
  fs::copy_file(path("b.db"), path("a.db"), fs::copy_options::overwrite_existing);
  EXPECT_EQ(Reader({path("a")}).rows(), 4);
  store(path("a.db"), "this is no database, though it is long enough to be taken for one");
  EXPECT_EQ(Reader({path("a")}).rows(), 4);
  expect_equal(Reader({path("a")}).read(3), record(3));
}

TEST_F(MindRecordTest, NothingChangesWithoutACommit) {
  write(path(), 1, 3, 3);
  const std::string before = load(path());
  {
    Writer w(path(), 1, true);
    w.set_schema(schema());
    w.write(records(5));
  }
  EXPECT_EQ(load(path()), before);
  EXPECT_EQ(names().size(), 2u);
  EXPECT_THAT([&] { Writer(path(), 1); }, ThrowsMessage<FileError>(HasSubstr("overwrite")));
  store(path("gone.tmp1-1"), "x");
  EXPECT_THAT([&] { Reader({path("gone")}); },
              ThrowsMessage<FileError>(AllOf(HasSubstr("gone"), HasSubstr("interrupted"))));
}

/// A limit for the size of files, which stands for a disk that is full.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit now{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &now);
  }
  ~FullDisk() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  void (*handler_)(int);
  rlimit before_;
};

TEST_F(MindRecordTest, AFullDiskLeavesNothing) {
  write(path(), 1, 3, 3);
  const auto before = names();
  const std::string kept = load(path());
  Writer writer(path(), 1, true);
  writer.set_schema(schema());
  {
    const FullDisk disk(100 << 10);
    const std::vector<Record> rows(2000, record(29));
    EXPECT_THAT(
        [&] {
          for (int i = 0; i < 100; ++i) writer.write(rows);
          writer.commit();
        },
        ThrowsMessage<FileError>(AllOf(HasSubstr(path()), HasSubstr("could not be written in full"))));
    EXPECT_EQ(names(), before);
  }
  EXPECT_THAT([&] { writer.write(std::vector<Record>{record(2)}); },
              ThrowsMessage<RuntimeError>(HasSubstr("writing failed before")));
  EXPECT_THAT([&] { writer.commit(); }, ThrowsMessage<RuntimeError>(HasSubstr("writing failed before")));
  EXPECT_EQ(names(), before);
  EXPECT_EQ(load(path()), kept);
}

TEST_F(MindRecordTest, RowsThatDoNotFitAreErrors) {
  Writer w(path());
  EXPECT_THROW(w.write(records(1)), RuntimeError);
  w.set_page_size(32 << 10);
  w.set_schema(schema());
  auto rows = records(3);
  rows[1][5] = std::int64_t{1} << 40;
  EXPECT_THAT([&] { w.write(rows); }, ThrowsMessage<ValueError>(AllOf(HasSubstr("row 1"), HasSubstr("'i32'"))));
  rows[1][5] = 1.0;
  EXPECT_THAT([&] { w.write(rows); }, ThrowsMessage<TypeError>(AllOf(HasSubstr("row 1"), HasSubstr("'i32'"))));
  rows = records(3);
  rows[2][8] = Tensor({1.f});
  EXPECT_THAT([&] { w.write(rows); }, ThrowsMessage<ValueError>(AllOf(HasSubstr("row 2"), HasSubstr("'x32'"))));
  rows = records(3);
  rows[0][2] = Tensor(DType::kUInt8, {40000});
  EXPECT_THAT([&] { w.write(rows); }, ThrowsMessage<ValueError>(HasSubstr("page_size")));
  EXPECT_EQ(w.rows(), 0);
  Schema bad = schema();
  bad.index = {"data"};
  EXPECT_THROW(Writer(path("b")).set_schema(bad), ValueError);
  EXPECT_THROW(field_type_of("uint8"), ValueError);
}

TEST_F(MindRecordTest, EmptyBytesAreKept) {
  Schema s;
  s.fields = {{"data", FieldType::kBytes, {}}};
  Writer w(path());
  w.set_schema(s);
  w.write(std::vector<Record>{{bytes_of("")}, {bytes_of("x")}, {bytes_of("")}});
  w.commit();
  const Reader r({path()});
  EXPECT_EQ(std::get<Tensor>(r.read(0)[0]).size(), 0);
  EXPECT_EQ(std::get<Tensor>(r.read(1)[0]).size(), 1);
}

TEST_F(MindRecordTest, DamageIsAnError) {
  write(path("good"), 1, 12, 12);
  const std::string good = load(path("good"));
  std::mt19937 random(1);
  int failed = 0;
  for (int k = 0; k < 400; ++k) {
    std::string bad = good;
    if (k % 4 == 0) bad.resize(random() % bad.size());
    // Header and used parts of the pages; in between lie zeros.
    const std::size_t places[] = {0, 8, 16 << 10, (16 << 10) + (32 << 10)};
    for (int j = 0; j < 4 && !bad.empty(); ++j) {
      const std::size_t at = places[random() % 4] + random() % 1500;
      if (at < bad.size()) bad[at] = static_cast<char>(random());
    }
    fs::remove(path("bad.db"));
    store(path("bad"), bad);
    try {
      const Reader r({path("bad")});
      for (std::int64_t i = 0; i < r.rows(); ++i) r.read(i);
    } catch (const FormatError& e) {
      ++failed;
      EXPECT_THAT(e.what(), HasSubstr("bad"));
    } catch (const FileError&) {  // other shards are named
      ++failed;
    }
  }
  EXPECT_GT(failed, 200);
  std::string header = good;
  header.replace(0, 8, 8, '\0');
  store(path("bad"), header);
  EXPECT_THAT([&] { Reader({path("bad")}); }, ThrowsMessage<FormatError>(HasSubstr("interrupted")));
  store(path("bad"), good.substr(0, good.size() - 1));
  EXPECT_THAT([&] { Reader({path("bad")}); }, ThrowsMessage<FormatError>(HasSubstr("cut short")));
}

}  // namespace
}  // namespace undertow::formats::mindrecord
