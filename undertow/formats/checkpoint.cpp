// SPDX-License-Identifier: Apache-2.0
#include "undertow/formats/checkpoint.h"

#include <fcntl.h>
#include <google/protobuf/io/coded_stream.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>

#include "checkpoint.pb.h"
#include "undertow/base/check.h"
#include "undertow/formats/atomic_file.h"

namespace undertow::formats {
namespace {

// Larger tensors are written as several values with the same name and shape, each with a part of the content, because
// a protobuf message may not be larger than 2 GiB.
constexpr std::size_t kPart = std::size_t{512} << 20;
// The CRC's trailer: this text, then the CRC-32 as a big-endian number of 10 bytes.
constexpr std::string_view kCrcMark = "crc_num";
constexpr std::size_t kCrcBytes = 10, kTrailer = kCrcMark.size() + kCrcBytes;
constexpr std::string_view kText = "str";

struct TypeName {
  DType dtype;
  std::string_view name;
};
constexpr std::array<TypeName, kNumDTypes> kTypes{{{DType::kBool, "Bool"},
                                                   {DType::kInt8, "Int8"},
                                                   {DType::kUInt8, "UInt8"},
                                                   {DType::kInt16, "Int16"},
                                                   {DType::kUInt16, "UInt16"},
                                                   {DType::kInt32, "Int32"},
                                                   {DType::kUInt32, "UInt32"},
                                                   {DType::kInt64, "Int64"},
                                                   {DType::kUInt64, "UInt64"},
                                                   {DType::kFloat16, "Float16"},
                                                   {DType::kBFloat16, "BFloat16"},
                                                   {DType::kFloat32, "Float32"},
                                                   {DType::kFloat64, "Float64"}}};

/// Texts are stored as UTF-32, little-endian.
std::string utf32_of(std::string_view utf8) {
  std::string out;
  for (std::size_t i = 0; i < utf8.size();) {
    const auto lead = static_cast<unsigned char>(utf8[i]);
    const std::size_t bytes = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    std::uint32_t code = bytes == 1 ? lead : lead & (0xFFu >> (bytes + 1));
    for (std::size_t k = 1; k < bytes && i + k < utf8.size(); ++k)
      code = code << 6 | (static_cast<unsigned char>(utf8[i + k]) & 0x3F);
    out.append(reinterpret_cast<const char*>(&code), sizeof code);
    i += bytes;
  }
  return out;
}
std::string utf8_of(std::string_view utf32) {
  std::string out;
  for (std::size_t i = 0; i + 4 <= utf32.size(); i += 4) {
    std::uint32_t code = 0;
    std::memcpy(&code, utf32.data() + i, sizeof code);
    if (code < 0x80) {
      out += static_cast<char>(code);
      continue;
    }
    const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    out += static_cast<char>((0xFF00u >> (more + 1) & 0xFFu) | code >> (6 * more));
    for (int k = more - 1; k >= 0; --k) out += static_cast<char>(0x80 | (code >> (6 * k) & 0x3F));
  }
  return out;
}

std::uint32_t crc_of(std::uint32_t crc, const void* data, std::size_t bytes) {
  const auto* next = static_cast<const Bytef*>(data);
  while (bytes > 0) {
    const auto part = static_cast<uInt>(std::min(bytes, kPart));
    crc = static_cast<std::uint32_t>(crc32(crc, next, part));
    next += part;
    bytes -= part;
  }
  return crc;
}

/// A file in memory, read-only.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat status{};
    UNDERTOW_CHECK(fd >= 0, FileError, "{} cannot be read: {}", path, std::strerror(errno));
    const bool known = ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
    size_ = known ? static_cast<std::size_t>(status.st_size) : 0;
    data_ = size_ ? ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd, 0) : nullptr;
    ::close(fd);
    UNDERTOW_CHECK(known, FileError, "{} cannot be read: it is not a file", path);
    UNDERTOW_CHECK(data_ != MAP_FAILED, FileError, "{} cannot be read: {}", path, std::strerror(errno));
  }
  ~MappedFile() {
    if (data_) ::munmap(data_, size_);
  }
  MappedFile(const MappedFile&) = delete;
  const std::uint8_t* data() const { return static_cast<const std::uint8_t*>(data_); }
  std::size_t size() const { return size_; }
  /// Bytes before the CRC's trailer, which are all bytes where there is none.
  std::size_t content() const {
    const bool marked =
        size_ >= kTrailer && std::memcmp(data() + size_ - kTrailer, kCrcMark.data(), kCrcMark.size()) == 0;
    return marked ? size_ - kTrailer : size_;
  }

 private:
  void* data_ = nullptr;
  std::size_t size_ = 0;
};

/// The next length-delimited field's number and bytes; false where the bytes are no such field.
bool read_field(const std::uint8_t*& next, const std::uint8_t* end, std::uint32_t& field, std::size_t& bytes) {
  const auto left = std::min<std::size_t>(static_cast<std::size_t>(end - next), 32);
  google::protobuf::io::CodedInputStream in(next, static_cast<int>(left));
  const std::uint32_t tag = in.ReadTag();
  std::uint64_t length = 0;
  if ((tag & 7u) != 2 || !in.ReadVarint64(&length)) return false;
  next += in.CurrentPosition();
  if (length > static_cast<std::uint64_t>(end - next)) return false;
  field = tag >> 3;
  bytes = static_cast<std::size_t>(length);
  return true;
}

class Reader {
 public:
  Reader(const std::string& path, const MappedFile& file) : path_(path), file_(file) {}

  std::vector<CheckpointEntry> read() {
    const std::uint8_t *next = file_.data(), *end = next + file_.content();
    while (next != end) {
      offset_ = static_cast<std::size_t>(next - file_.data());
      std::uint32_t field = 0;
      std::size_t bytes = 0;
      if (!read_field(next, end, field, bytes) || field != proto::Checkpoint::kValueFieldNumber)
        fail("there is no entry here: the file is not a checkpoint, is cut short, or is encrypted");
      proto::Value value;
      if (bytes > static_cast<std::size_t>(std::numeric_limits<int>::max()) ||
          !value.ParsePartialFromArray(next, static_cast<int>(bytes)) || !value.IsInitialized() || !value.has_tensor())
        fail("this entry is not a tensor");
      next += bytes;
      add(value);
    }
    finish();
    return std::move(entries_);
  }

 private:
  void add(const proto::Value& value) {
    const proto::TensorValue& tensor = value.tensor();
    const std::string& content = tensor.tensor_content();
    if (tensor.tensor_type() == kText) {
      finish();
      entries_.push_back({value.tag(), {}, utf8_of(content)});
      return;
    }
    const auto* type = std::ranges::find(kTypes, tensor.tensor_type(), &TypeName::name);
    if (type == kTypes.end()) fail(fmt::format("'{}' has the unknown type '{}'", value.tag(), tensor.tensor_type()));
    Shape shape;
    for (const std::int64_t dim : tensor.dims()) {
      if (dim < 0 || shape.rank() == Shape::kMaxRank) fail(fmt::format("'{}' has a shape that cannot be", value.tag()));
      shape.push_back(dim);
    }
    const bool continues = !entries_.empty() && entries_.back().name == value.tag() &&
                           entries_.back().tensor.defined() && filled_ < entries_.back().tensor.nbytes();
    if (!continues) {
      finish();
      check_size(value.tag(), shape, type->dtype);
      entries_.push_back({value.tag(), Tensor(type->dtype, shape), {}});
    }
    const Tensor& whole = entries_.back().tensor;
    if (whole.shape() != shape || whole.dtype() != type->dtype || content.size() > whole.nbytes() - filled_)
      fail(fmt::format("'{}' has {} bytes too many for its shape", value.tag(), content.size()));
    if (!content.empty()) std::memcpy(static_cast<char*>(whole.data()) + filled_, content.data(), content.size());
    filled_ += content.size();
  }

  /// A damaged shape must not ask for more memory than the file could fill.
  void check_size(const std::string& name, const Shape& shape, DType dtype) {
    std::size_t room = file_.size() / size_of(dtype);
    for (int i = 0; i < shape.rank(); ++i) {
      if (shape[i] == 0) return;
    }
    for (int i = 0; i < shape.rank(); ++i) room /= static_cast<std::size_t>(shape[i]);
    if (room == 0) fail(fmt::format("'{}' says shape {}, which is more than the file holds", name, shape.str()));
  }

  void finish() {
    if (!entries_.empty() && entries_.back().tensor.defined() && filled_ != entries_.back().tensor.nbytes())
      fail(fmt::format("'{}' has {} of its {} bytes", entries_.back().name, filled_, entries_.back().tensor.nbytes()));
    filled_ = 0;
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw FormatError(fmt::format("{}, offset {}: {}", path_, offset_, what));
  }

  const std::string& path_;
  const MappedFile& file_;
  std::vector<CheckpointEntry> entries_;
  std::size_t filled_ = 0, offset_ = 0;
};

}  // namespace

void save_checkpoint(const std::string& path, std::span<const CheckpointEntry> entries, bool crc) {
  AtomicFile file(path);
  std::uint32_t sum = 0;
  const auto write = [&](const std::string& bytes) {
    if (crc) sum = crc_of(sum, bytes.data(), bytes.size());
    file.write(bytes);
  };
  for (const CheckpointEntry& entry : entries) {
    const std::string text = entry.tensor.defined() ? "" : utf32_of(entry.text);
    const char* data = entry.tensor.defined() ? static_cast<const char*>(entry.tensor.data()) : text.data();
    const std::size_t bytes = entry.tensor.defined() ? entry.tensor.nbytes() : text.size();
    std::size_t done = 0;
    do {
      proto::Checkpoint message;
      proto::Value& value = *message.add_value();
      value.set_tag(entry.name);
      proto::TensorValue& tensor = *value.mutable_tensor();
      if (entry.tensor.defined()) {
        for (int i = 0; i < entry.tensor.ndim(); ++i) tensor.add_dims(entry.tensor.shape(i));
        tensor.set_tensor_type(std::string(std::ranges::find(kTypes, entry.tensor.dtype(), &TypeName::dtype)->name));
      } else {
        tensor.add_dims(0);
        tensor.set_tensor_type(std::string(kText));
      }
      const std::size_t part = std::min(bytes - done, kPart);
      tensor.set_tensor_content(data + done, part);
      write(message.SerializeAsString());
      done += part;
    } while (done < bytes);
  }
  if (crc) {
    std::string trailer(kCrcMark);
    for (int i = kCrcBytes - 1; i >= 0; --i) trailer += i < 4 ? static_cast<char>(sum >> (8 * i)) : '\0';
    file.write(trailer);
  }
  file.commit();
}

std::vector<CheckpointEntry> load_checkpoint(const std::string& path, bool check_crc) {
  const MappedFile file(path);
  UNDERTOW_CHECK(file.size() > 0, FormatError, "{} is empty: it is not a checkpoint", path);
  const std::size_t content = file.content();
  if (check_crc && content != file.size()) {
    std::uint32_t stored = 0;
    for (std::size_t i = file.size() - 4; i < file.size(); ++i) stored = stored << 8 | file.data()[i];
    const std::uint32_t sum = crc_of(0, file.data(), content);
    UNDERTOW_CHECK(sum == stored, FormatError,
                   "{}: the CRC at its end is {:08x}, its content has {:08x}: it is damaged", path, stored, sum);
  }
  return Reader(path, file).read();
}

bool has_crc(const std::string& path) {
  const MappedFile file(path);
  return file.content() != file.size();
}

}  // namespace undertow::formats
