// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "interpreter.h"
#include "undertow/codegen/object_cache.h"

namespace undertow::codegen_test {
namespace {

namespace fs = std::filesystem;
using std::int64_t;

/// A folder of its own as the disk cache for the length of a test.
class CacheFolder {
 public:
  CacheFolder() : path_(fs::temp_directory_path() / ("undertow-cache-test-" + std::to_string(::getpid()))) {
    fs::remove_all(path_);
    setenv("UNDERTOW_CACHE_DIR", path_.c_str(), 1);
    unsetenv("UNDERTOW_CACHE");
    codegen::clear_memory_cache();
  }
  ~CacheFolder() {
    unsetenv("UNDERTOW_CACHE_DIR");
    fs::remove_all(path_);
  }
  std::vector<fs::path> entries() const {
    std::vector<fs::path> found;
    if (fs::exists(path_))
      for (const auto& e : fs::directory_iterator(path_)) found.push_back(e.path());
    return found;
  }
  std::string str() const { return path_.string(); }

 private:
  fs::path path_;
};

ir::LoopNest scale_by(double factor) {
  return elementwise({100}, {DType::kFloat32}, DType::kFloat32, [&](auto&, const auto& in) { return in[0] * factor; });
}

void expect_works(const ir::LoopNest& nest) {
  std::vector<Buffer> buffers{{DType::kFloat32, 100}, {DType::kFloat32, 100}};
  fill(buffers[0], 1);
  check(nest, buffers);
}

TEST(MemoryCache, EqualNestsAreCompiledOnce) {
  codegen::clear_memory_cache();
  const auto a = scale_by(3), b = scale_by(3), c = scale_by(4);
  const ir::LoopNest* nests[] = {&a, &b, &c};
  const auto before = codegen::compile_stats();
  const auto kernels = codegen::compile(nests);
  EXPECT_EQ(kernels[0].fn, kernels[1].fn);
  EXPECT_NE(kernels[0].fn, kernels[2].fn);
  EXPECT_EQ(kernels[0].module, kernels[2].module);
  const auto again = codegen::compile(nests);
  EXPECT_EQ(again[2].fn, kernels[2].fn);
  EXPECT_EQ(codegen::compile_stats().nests_in_memory - before.nests_in_memory, 3);
  EXPECT_TRUE(codegen::compile({}).empty());
}

TEST(MemoryCache, CodeOutlivesTheCache) {
  const auto nest = scale_by(5);
  const auto kernel = compile_one(nest);
  codegen::clear_memory_cache();
  std::vector<Buffer> buffers{{DType::kFloat32, 100}, {DType::kFloat32, 100}};
  buffers[0].set(99, 2);
  run(kernel, buffers, 0, kernel.units);
  EXPECT_EQ(buffers[1].get(99), 10);
}

TEST(MemoryCache, SeveralThreads) {
  codegen::clear_memory_cache();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([t] {
      for (int i = 0; i < 4; ++i) {
        const auto nest = scale_by(10 + (i + t) % 5);
        EXPECT_NE(compile_one(nest).fn, nullptr);
      }
    });
  for (auto& t : threads) t.join();
}

TEST(DiskCache, HitMissAndDamage) {
  const CacheFolder folder;
  const auto nest = scale_by(7);
  const auto count = [] { return codegen::compile_stats(); };
  auto before = count();
  expect_works(nest);
  EXPECT_EQ(count().modules_compiled - before.modules_compiled, 1);
  ASSERT_EQ(folder.entries().size(), 1u);

  codegen::clear_memory_cache();
  before = count();
  expect_works(nest);
  EXPECT_EQ(count().modules_compiled - before.modules_compiled, 0);
  EXPECT_EQ(count().modules_from_disk - before.modules_from_disk, 1);

  const auto path = folder.entries()[0];
  const auto size = fs::file_size(path);
  const std::function<void()> damages[] = {
      [&] { fs::resize_file(path, size / 2); },
      [&] { fs::resize_file(path, 0); },
      [&] {
        std::fstream f(path, std::ios::in | std::ios::out | std::ios::binary);
        f.seekp(static_cast<std::streamoff>(size / 2));
        f.put('\x5a');
        f.put('\xa5');
      },
      [&] { std::ofstream(path, std::ios::app) << "more"; },
      [&] { std::ofstream(path) << "not an object at all"; },
      [&] {
        fs::remove(path);
        fs::create_directory(path);
      },
  };
  for (const auto& damage : damages) {
    damage();
    codegen::clear_memory_cache();
    before = count();
    expect_works(nest);
    EXPECT_EQ(count().modules_compiled - before.modules_compiled, 1);
  }
}

TEST(DiskCache, WholeButNotAnObjectIsAMiss) {
  const CacheFolder folder;
  const auto nest = scale_by(8);
  expect_works(nest);
  ASSERT_EQ(folder.entries().size(), 1u);
  // A valid entry whose content LLVM cannot link.
  const std::string name = folder.entries()[0].stem().string();
  Digest key;
  key.a = std::stoull(name.substr(0, 16), nullptr, 16);
  key.b = std::stoull(name.substr(16), nullptr, 16);
  codegen::ObjectCache().store(key, "no ELF here");
  ASSERT_TRUE(codegen::ObjectCache().find(key).has_value());
  codegen::clear_memory_cache();
  expect_works(nest);
}

TEST(DiskCache, UnusableFolderIsNoError) {
  unsetenv("UNDERTOW_CACHE");
  setenv("UNDERTOW_CACHE_DIR", "/proc/undertow-cannot-be-here", 1);
  codegen::clear_memory_cache();
  expect_works(scale_by(9));
  unsetenv("UNDERTOW_CACHE_DIR");
}

TEST(DiskCache, SwitchedOff) {
  const CacheFolder folder;
  setenv("UNDERTOW_CACHE", "0", 1);
  expect_works(scale_by(11));
  unsetenv("UNDERTOW_CACHE");
  EXPECT_TRUE(folder.entries().empty());
}

TEST(DiskCache, RemovesTheOldestBeyondItsSize) {
  const CacheFolder folder;
  const codegen::ObjectCache cache(folder.str(), 3500);
  const std::string object(1000, 'x');
  for (std::uint64_t i = 0; i < 3; ++i) {
    cache.store({i, i}, object);
    fs::last_write_time(cache.path_of({i, i}), fs::file_time_type::clock::now() - std::chrono::hours(10 - i));
  }
  EXPECT_TRUE(cache.find({0, 0}).has_value());  // used now: no longer the oldest
  cache.store({3, 3}, object);
  EXPECT_TRUE(cache.find({0, 0}).has_value());
  EXPECT_FALSE(cache.find({1, 1}).has_value());
  EXPECT_TRUE(cache.find({2, 2}).has_value());
  EXPECT_TRUE(cache.find({3, 3}).has_value());
}

}  // namespace
}  // namespace undertow::codegen_test
