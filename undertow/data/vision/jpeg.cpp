// SPDX-License-Identifier: Apache-2.0
// JPEG through libjpeg-turbo. Its errors leave by longjmp: the functions that call setjmp hold nothing that needs a
// destructor; that lives in the callers.
// clang-format off
#include <cstdio>  // jpeglib.h needs size_t and FILE
#include <jpeglib.h>
#include <jerror.h>
// clang-format on

#include <algorithm>
#include <csetjmp>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "undertow/data/vision/codec.h"

namespace undertow::data::vision {
namespace {

struct ErrorManager {
  jpeg_error_mgr base;  // first: libjpeg hands out a pointer to it
  std::jmp_buf leave;
  char message[JMSG_LENGTH_MAX];
};

void on_error(j_common_ptr info) {
  auto* errors = reinterpret_cast<ErrorManager*>(info->err);
  errors->base.format_message(info, errors->message);
  std::longjmp(errors->leave, 1);
}

/// libjpeg only warns about pixels that it had to make up; those are errors here. Harmless oddities are not: bytes
/// between markers, a missing end marker after the last pixel.
void on_message(j_common_ptr info, int level) {
  if (level >= 0) return;
  bool fatal = false;
  switch (info->err->msg_code) {
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_MUST_RESYNC:
    case JWRN_BOGUS_PROGRESSION: fatal = true; break;
    // The scans of a progressive file are read to the end before the first pixel.
    case JWRN_JPEG_EOF:
      fatal = info->is_decompressor && reinterpret_cast<j_decompress_ptr>(info)->progressive_mode;
      break;
    default: break;
  }
  if (fatal) on_error(info);
}

/// One libjpeg object and buffers for each thread: making them anew costs more than a small image.
class Decoder {
 public:
  Decoder() {
    info_.err = jpeg_std_error(&errors_.base);
    errors_.base.error_exit = on_error;
    errors_.base.emit_message = on_message;
    errors_.message[0] = 0;
    if (setjmp(errors_.leave) == 0) jpeg_create_decompress(&info_);
    else std::abort();  // out of memory for a few hundred bytes
  }
  ~Decoder() { jpeg_destroy_decompress(&info_); }
  Decoder(const Decoder&) = delete;
  static Decoder& of_thread() {
    thread_local Decoder d;
    return d;
  }

  void header(const char* op, Bytes file) {
    if (!read_header(file)) fail(op, file);
  }
  std::int64_t height() const { return info_.image_height; }
  std::int64_t width() const { return info_.image_width; }
  void abort() { jpeg_abort_decompress(&info_); }

  /// `shrink`: 1, 2, 4 or 8.
  View<std::uint8_t> pixels(const char* op, Bytes file, ImageReadMode mode, std::optional<Rect> window, int shrink) {
    header(op, file);
    UNDERTOW_CHECK(height() * width() <= (std::int64_t{1} << 28), DataError,
                   "{}: an image of {} x {} pixels is larger than the 2^28 pixels that are taken", op, height(),
                   width());
    const bool four = info_.jpeg_color_space == JCS_CMYK || info_.jpeg_color_space == JCS_YCCK;
    const bool grey = mode == ImageReadMode::kGrayscale ||
                      (mode == ImageReadMode::kUnchanged && info_.jpeg_color_space == JCS_GRAYSCALE);
    info_.out_color_space = four ? JCS_CMYK : grey ? JCS_GRAYSCALE : JCS_RGB;
    info_.dct_method = JDCT_ISLOW;
    Rect r = window.value_or(Rect{0, 0, height(), width()});
    if (r.top < 0 || r.left < 0 || r.height < 1 || r.width < 1 || r.top + r.height > height() ||
        r.left + r.width > width()) {
      const auto h = height(), w = width();
      abort();
      throw DataError(fmt::format("{}: the window (top {}, left {}, {} x {}) is not within the image of {} x {}", op,
                                  r.top, r.left, r.height, r.width, h, w));
    }
    if (!start(r, shrink)) fail(op, file);
    r = smaller(r, shrink);
    // Rows are read whole, from the first one that can be read; the window lies within them.
    const auto components = static_cast<std::int64_t>(info_.output_components);
    view_.c = components;
    view_.stride = static_cast<std::int64_t>(info_.output_width) * components;
    out_ = room_.of((r.top + r.height - first_row_) * view_.stride + 16);
    if (!read_rows(r.top + r.height)) fail(op, file);
    view_.data = out_ + (r.top - first_row_) * view_.stride + (r.left - first_column_) * components;
    view_.h = r.height;
    view_.w = r.width;
    if (!four) return view_;
    rgb_ = from_cmyk(view_, info_.saw_Adobe_marker);
    const Extent e{r.height, r.width, 3};
    if (grey) rgb_ = luma(rgb_, e);
    const std::int64_t c = grey ? 1 : 3;
    return {static_cast<const std::uint8_t*>(rgb_.data()), r.height, r.width, c, r.width * c};
  }

 private:
  [[noreturn]] void fail(const char* op, Bytes file) {
    abort();
    throw DataError(fmt::format("{}: damaged JPEG of {} bytes: {}", op, file.size(), errors_.message));
  }

  bool read_header(Bytes file) {
    if (setjmp(errors_.leave)) return false;
    jpeg_abort_decompress(&info_);  // whatever the last image left behind
    jpeg_mem_src(&info_, file.data(), file.size());
    jpeg_read_header(&info_, TRUE);
    return true;
  }

  /// The pixels of the shrunk image that `r` touches.
  static Rect smaller(const Rect& r, int shrink) {
    const std::int64_t top = r.top / shrink, left = r.left / shrink;
    return {top, left, (r.top + r.height + shrink - 1) / shrink - top, (r.left + r.width + shrink - 1) / shrink - left};
  }

  // After a longjmp only members are looked at.
  bool start(const Rect& of_whole, int shrink) {
    if (setjmp(errors_.leave)) return false;
    info_.scale_num = 1;
    info_.scale_denom = static_cast<unsigned>(shrink);
    jpeg_start_decompress(&info_);
    first_row_ = first_column_ = 0;
    const auto w = static_cast<std::int64_t>(info_.output_width);
    const Rect r = smaller(of_whole, shrink);
    if (r.width == w && r.height == static_cast<std::int64_t>(info_.output_height)) return true;
    // Smooth upsampling of chroma looks at the neighbours: with two columns more on each side, and starting on a row of
    // whole blocks, every pixel of the window is what it is in the whole image.
    // At least kLeast columns: the upsamplers are not made for one or two.
    constexpr std::int64_t kLeast = 48;
    const std::int64_t first = std::max<std::int64_t>(std::min(r.left - 2, w - kLeast), 0);
    const std::int64_t end = std::min(std::max(r.left + r.width + 2, first + kLeast), w);
    auto left = static_cast<JDIMENSION>(first), span = static_cast<JDIMENSION>(end - first);
    if (span < info_.output_width) {
      jpeg_crop_scanline(&info_, &left, &span);
      first_column_ = left;
    }
    const auto rows = static_cast<std::int64_t>(info_.max_v_samp_factor) * DCTSIZE / shrink;
    const auto skip = static_cast<JDIMENSION>(std::max<std::int64_t>(r.top / rows - 1, 0) * rows);
    if (skip > 0) jpeg_skip_scanlines(&info_, skip);
    first_row_ = info_.output_scanline;
    return true;
  }

  bool read_rows(std::int64_t end) {
    if (setjmp(errors_.leave)) return false;
    constexpr int kRows = 4;  // as many as there are in a row group at most
    while (info_.output_scanline < end) {
      const std::int64_t at = info_.output_scanline, n = std::min<std::int64_t>(kRows, end - at);
      JSAMPROW rows[kRows];
      for (std::int64_t i = 0; i < n; ++i) rows[i] = out_ + (at + i - first_row_) * view_.stride;
      jpeg_read_scanlines(&info_, rows, static_cast<JDIMENSION>(n));
    }
    jpeg_abort_decompress(&info_);  // the rows below cost nothing
    return true;
  }

  static Tensor from_cmyk(const View<std::uint8_t>& cmyk, bool inverted) {
    Tensor y(DType::kUInt8, {cmyk.h, cmyk.w, 3});
    auto* out = static_cast<std::uint8_t*>(y.data());
    for (std::int64_t row = 0; row < cmyk.h; ++row) {
      const std::uint8_t* in = cmyk.row(row);
      for (std::int64_t i = 0; i < cmyk.w; ++i, in += 4)
        for (int k = 0; k < 3; ++k) {
          // Adobe stores 255 - ink.
          const int ink = inverted ? in[k] : 255 - in[k], black = inverted ? in[3] : 255 - in[3];
          *out++ = static_cast<std::uint8_t>((ink * black + 127) / 255);
        }
    }
    return y;
  }

  ErrorManager errors_{};
  jpeg_decompress_struct info_{};
  Room<std::uint8_t> room_;
  std::uint8_t* out_ = nullptr;
  View<std::uint8_t> view_;
  std::int64_t first_row_ = 0, first_column_ = 0;  // of what is decoded
  Tensor rgb_;
};

struct Encoder {
  ErrorManager errors{};
  jpeg_compress_struct info{};
  unsigned char* memory = nullptr;
  unsigned long size = 0;

  ~Encoder() {
    jpeg_destroy_compress(&info);
    std::free(memory);
  }
  bool run(const Extent& e, const std::uint8_t* in, int quality) {
    info.err = jpeg_std_error(&errors.base);
    errors.base.error_exit = on_error;
    if (setjmp(errors.leave)) return false;
    jpeg_create_compress(&info);
    jpeg_mem_dest(&info, &memory, &size);
    info.image_height = static_cast<JDIMENSION>(e.h);
    info.image_width = static_cast<JDIMENSION>(e.w);
    info.input_components = static_cast<int>(e.c);
    info.in_color_space = e.c == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&info);
    jpeg_set_quality(&info, quality, TRUE);
    jpeg_start_compress(&info, TRUE);
    while (info.next_scanline < info.image_height) {
      auto* row =
          const_cast<JSAMPROW>(in + static_cast<std::size_t>(info.next_scanline) * static_cast<std::size_t>(e.row()));
      jpeg_write_scanlines(&info, &row, 1);
    }
    jpeg_finish_compress(&info);
    return true;
  }
};

/// Height and width in the first frame header, where all segments before it are in order.
std::optional<std::pair<std::int64_t, std::int64_t>> frame_size(Bytes f) {
  for (std::size_t at = 2; at + 9 < f.size() && f[at] == 0xff;) {
    const int marker = f[at + 1];
    const std::size_t length = std::size_t{f[at + 2]} << 8 | f[at + 3];
    const bool frame = marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
    if (frame) {
      const std::int64_t h = f[at + 5] << 8 | f[at + 6], w = f[at + 7] << 8 | f[at + 8];
      if (h > 0 && w > 0) return std::pair{h, w};
      return std::nullopt;
    }
    if (marker < 0xc0 || (marker >= 0xd0 && marker <= 0xda) || length < 2) return std::nullopt;
    at += 2 + length;
  }
  return std::nullopt;
}

}  // namespace

std::pair<std::int64_t, std::int64_t> jpeg_size(const char* op, Bytes file) {
  // The frame's header tells; libjpeg reads the others in vain, and says what is wrong where there is none.
  if (const auto size = frame_size(file)) return *size;
  Decoder& d = Decoder::of_thread();
  d.header(op, file);
  const std::pair size{d.height(), d.width()};
  d.abort();
  return size;
}

View<std::uint8_t> decode_jpeg(const char* op, Bytes file, ImageReadMode mode, std::optional<Rect> window, int shrink) {
  return Decoder::of_thread().pixels(op, file, mode, window, shrink);
}

Tensor encode_jpeg(const Tensor& image, int quality) {
  UNDERTOW_CHECK(quality >= 1 && quality <= 100, ValueError, "encode_jpeg: quality must be in [1, 100], got {}",
                 quality);
  const Extent e = byte_image("encode_jpeg", image);
  UNDERTOW_CHECK(e.h >= 1 && e.w >= 1 && e.h <= JPEG_MAX_DIMENSION && e.w <= JPEG_MAX_DIMENSION, DataError,
                 "encode_jpeg takes images of 1 to {} rows and columns, got shape {}", JPEG_MAX_DIMENSION,
                 image.shape().str());
  const auto encoder = std::make_unique<Encoder>();
  UNDERTOW_CHECK(encoder->run(e, static_cast<const std::uint8_t*>(image.data()), quality), DataError, "encode_jpeg: {}",
                 encoder->errors.message);
  return Tensor(std::span<const std::uint8_t>(encoder->memory, encoder->size));
}

}  // namespace undertow::data::vision
