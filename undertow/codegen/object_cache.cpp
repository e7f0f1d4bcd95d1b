// SPDX-License-Identifier: Apache-2.0
#include "undertow/codegen/object_cache.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

namespace undertow::codegen {
namespace {

namespace fs = std::filesystem;

/// Before the object's bytes.
struct Header {
  char magic[8] = {'u', 't', 'w', 'o', 'b', 'j', '0', '1'};
  Digest key, content;
  std::uint64_t bytes = 0;
};

Digest digest_of(std::string_view bytes) { return Hasher().add(bytes).digest(); }

std::string default_folder() {
  const auto env = [](const char* name) {
    const char* v = std::getenv(name);
    return std::string(v ? v : "");
  };
  if (env("UNDERTOW_CACHE") == "0") return {};
  if (const auto v = env("UNDERTOW_CACHE_DIR"); !v.empty()) return v;
  if (const auto v = env("XDG_CACHE_HOME"); !v.empty()) return v + "/undertow";
  if (const auto v = env("HOME"); !v.empty()) return v + "/.cache/undertow";
  return {};
}

}  // namespace

ObjectCache::ObjectCache() : folder_(default_folder()) {}

std::optional<std::string> ObjectCache::find(const Digest& key) const {
  if (!enabled()) return std::nullopt;
  const std::string path = path_of(key);
  std::ifstream in(path, std::ios::binary);
  Header header;
  const Header expected;
  if (!in.read(reinterpret_cast<char*>(&header), sizeof header)) return std::nullopt;
  if (std::memcmp(header.magic, expected.magic, sizeof header.magic) != 0 || !(header.key == key)) return std::nullopt;
  std::error_code error;
  const auto size = fs::file_size(path, error);
  if (error || size != sizeof header + header.bytes) return std::nullopt;
  std::string object(header.bytes, '\0');
  if (!in.read(object.data(), static_cast<std::streamsize>(object.size()))) return std::nullopt;
  if (!(digest_of(object) == header.content)) return std::nullopt;
  fs::last_write_time(path, fs::file_time_type::clock::now(), error);
  return object;
}

void ObjectCache::store(const Digest& key, const std::string& object) const {
  if (!enabled()) return;
  static std::atomic<unsigned> count{0};
  std::error_code error;
  fs::create_directories(folder_, error);
  const std::string path = path_of(key),
                    temporary = path + "." + std::to_string(::getpid()) + "." + std::to_string(count++) + ".tmp";
  Header header;
  header.key = key;
  header.content = digest_of(object);
  header.bytes = object.size();
  {
    std::ofstream out(temporary, std::ios::binary);
    out.write(reinterpret_cast<const char*>(&header), sizeof header);
    out.write(object.data(), static_cast<std::streamsize>(object.size()));
    out.flush();
    if (!out) {
      out.close();
      fs::remove(temporary, error);
      return;
    }
  }
  fs::rename(temporary, path, error);
  if (error) fs::remove(temporary, error);
  // A look through a full folder takes longer than a compilation: one a process, then one for every sixteenth of the
  // maximum that it writes.
  static std::atomic<std::uint64_t> unseen{UINT64_MAX / 2};
  if (unseen.fetch_add(object.size()) + object.size() < max_bytes_ / 16) return;
  unseen = 0;
  evict();
}

void ObjectCache::evict() const {
  struct Entry {
    fs::path path;
    std::uint64_t bytes;
    fs::file_time_type used;
  };
  std::vector<Entry> entries;
  std::uint64_t total = 0;
  std::error_code error;
  const auto now = fs::file_time_type::clock::now();
  for (auto it = fs::directory_iterator(folder_, error); !error && it != fs::directory_iterator();
       it.increment(error)) {
    std::error_code e1, e2;
    const auto& path = it->path();
    Entry entry{path, it->file_size(e1), it->last_write_time(e2)};
    if (e1 || e2) continue;
    // Left behind by a process that died.
    if (path.extension() == ".tmp" && now - entry.used > std::chrono::hours(1)) fs::remove(path, e1);
    if (path.extension() != ".o") continue;
    total += entry.bytes;
    entries.push_back(std::move(entry));
  }
  if (total <= max_bytes_) return;
  std::sort(entries.begin(), entries.end(), [](const Entry& x, const Entry& y) { return x.used < y.used; });
  for (const auto& entry : entries) {
    if (total <= max_bytes_) return;
    fs::remove(entry.path, error);
    total -= entry.bytes;
  }
}

Digest build_digest() {
  static const Digest digest = [] {
    struct Found {
      std::uintptr_t here = reinterpret_cast<std::uintptr_t>(&build_digest);
      std::string id;
    } found;
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* data) {
          auto& f = *static_cast<Found*>(data);
          bool ours = false;
          for (int i = 0; i < info->dlpi_phnum; ++i) {
            const auto& p = info->dlpi_phdr[i];
            const auto start = info->dlpi_addr + p.p_vaddr;
            ours |= p.p_type == PT_LOAD && f.here >= start && f.here < start + p.p_memsz;
          }
          if (!ours) return 0;
          for (int i = 0; i < info->dlpi_phnum; ++i) {
            const auto& p = info->dlpi_phdr[i];
            if (p.p_type != PT_NOTE) continue;
            const char* at = reinterpret_cast<const char*>(info->dlpi_addr + p.p_vaddr);
            for (const char* end = at + p.p_memsz; at + sizeof(ElfW(Nhdr)) <= end;) {
              ElfW(Nhdr) note;
              std::memcpy(&note, at, sizeof note);
              const char* name = at + sizeof note;
              const char* desc = name + ((note.n_namesz + 3) & ~3u);
              if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0)
                f.id.assign(desc, note.n_descsz);
              at = desc + ((note.n_descsz + 3) & ~3u);
            }
          }
          return 1;
        },
        &found);
    if (!found.id.empty()) return Hasher().add(std::string_view(found.id)).digest();
    Dl_info info;
    std::error_code error;
    Hasher h;
    if (dladdr(reinterpret_cast<void*>(&build_digest), &info) && info.dli_fname) {
      h.add(std::string_view(info.dli_fname)).add(fs::file_size(info.dli_fname, error));
      h.add(fs::last_write_time(info.dli_fname, error).time_since_epoch().count());
    }
    return h.digest();
  }();
  return digest;
}

}  // namespace undertow::codegen
