// SPDX-License-Identifier: Apache-2.0
#include "undertow/formats/tfrecord.h"

#include <nmmintrin.h>
#include <zlib.h>

#include <cstring>

#include "tfrecord.pb.h"
#include "undertow/base/check.h"

namespace undertow::formats {
namespace {

// A record: length (uint64), masked CRC-32C of the length, data, masked CRC-32C of the data; all little-endian.
// Source: www.tensorflow.org/tutorials/load_data/tfrecord.
constexpr std::uint64_t kBefore = 12, kAfter = 4;

std::uint32_t masked_crc(const char* data, std::size_t bytes) {
  std::uint64_t crc = 0xFFFFFFFF;
  for (; bytes >= 8; bytes -= 8, data += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, data, 8);
    crc = _mm_crc32_u64(crc, word);
  }
  for (; bytes > 0; --bytes, ++data)
    crc = _mm_crc32_u8(static_cast<std::uint32_t>(crc), static_cast<unsigned char>(*data));
  const std::uint32_t c = ~static_cast<std::uint32_t>(crc);
  return ((c >> 15) | (c << 17)) + 0xa282ead8u;
}

std::vector<char> inflate_all(const InputFile& file) {
  std::vector<char> in(static_cast<std::size_t>(file.size())), out;
  file.read(0, in.data(), in.size());
  z_stream z{};
  UNDERTOW_CHECK(inflateInit2(&z, 15 + 32) == Z_OK, RuntimeError,
                 "zlib cannot start");  // + 32: gzip or zlib by content
  const std::unique_ptr<z_stream, int (*)(z_stream*)> closer(&z, inflateEnd);
  std::size_t taken = 0, made = 0;
  int code = Z_OK;
  while (code == Z_OK) {
    constexpr std::size_t kStep = std::size_t{4} << 20;
    if (z.avail_in == 0) {
      z.next_in = reinterpret_cast<Bytef*>(in.data() + taken);
      z.avail_in = static_cast<uInt>(std::min(in.size() - taken, kStep));
      taken += z.avail_in;
    }
    out.resize(made + kStep);
    z.next_out = reinterpret_cast<Bytef*>(out.data() + made);
    z.avail_out = kStep;
    code = inflate(&z, Z_NO_FLUSH);
    made += kStep - z.avail_out;
    if (code == Z_STREAM_END && (z.avail_in > 0 || taken < in.size())) code = inflateReset(&z);  // another member
    UNDERTOW_CHECK(code == Z_OK || code == Z_STREAM_END, FormatError,
                   "{} is damaged or not compressed: {} after {} bytes", file.path(), z.msg ? z.msg : "it is cut short",
                   made);
  }
  out.resize(made);
  return out;
}

}  // namespace

TfRecordFile::TfRecordFile(const std::string& path, const std::string& compression) : path_(path) {
  UNDERTOW_CHECK(compression.empty() || compression == "GZIP" || compression == "ZLIB", ValueError,
                 "compression_type must be '', 'GZIP' or 'ZLIB', got '{}'", compression);
  file_ = std::make_unique<InputFile>(path);
  std::uint64_t size = file_->size();
  if (!compression.empty()) {
    content_ = inflate_all(*file_);
    size = content_.size();
    file_.reset();
  }
  for (std::uint64_t at = 0; at < size;) {
    char head[kBefore] = {};
    std::uint64_t length = 0;
    std::uint32_t crc = 0;
    const bool whole = size - at >= kBefore;
    if (whole) load(at, head, kBefore);
    std::memcpy(&length, head, 8);
    std::memcpy(&crc, head + 8, 4);
    UNDERTOW_CHECK(!whole || crc == masked_crc(head, 8), FormatError,
                   "{} is not a TFRecord file, or is compressed or damaged: the length at offset {} has another CRC",
                   path_, at);
    UNDERTOW_CHECK(whole && size - at - kBefore >= kAfter && length <= size - at - kBefore - kAfter, FormatError,
                   "{} is cut short: record {} at offset {} does not end", path_, records_.size(), at);
    records_.emplace_back(at + kBefore, length);
    at += kBefore + length + kAfter;
  }
}

void TfRecordFile::load(std::uint64_t offset, void* out, std::size_t bytes) const {
  if (file_) file_->read(offset, out, bytes);
  else if (bytes) std::memcpy(out, content_.data() + offset, bytes);
}

TfExample TfRecordFile::read(std::int64_t row) const {
  const auto [at, length] = records_[static_cast<std::size_t>(row)];
  std::string bytes(static_cast<std::size_t>(length) + kAfter, '\0');
  load(at, bytes.data(), bytes.size());
  std::uint32_t crc = 0;
  std::memcpy(&crc, bytes.data() + length, kAfter);
  bytes.resize(static_cast<std::size_t>(length));
  UNDERTOW_CHECK(crc == masked_crc(bytes.data(), bytes.size()), FormatError,
                 "{} is damaged: record {} at offset {} has another CRC", path_, row, at);
  proto::Example example;
  UNDERTOW_CHECK(example.ParseFromString(bytes), FormatError, "{}: record {} at offset {} is no Example", path_, row,
                 at);
  TfExample out;
  for (const auto& [name, feature] : example.features().feature()) {
    TfFeature& f = out[name];
    if (feature.has_float_list()) {
      const auto& list = feature.float_list().value();
      f = std::vector<float>(list.begin(), list.end());
    } else if (feature.has_int64_list()) {
      const auto& list = feature.int64_list().value();
      f = std::vector<std::int64_t>(list.begin(), list.end());
    } else {
      const auto& list = feature.bytes_list().value();
      f = std::vector<std::string>(list.begin(), list.end());
    }
  }
  return out;
}

}  // namespace undertow::formats
