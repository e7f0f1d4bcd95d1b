// SPDX-License-Identifier: Apache-2.0
// PNG through libpng. As in jpeg.cpp, errors leave by longjmp to functions that hold nothing with a destructor.
#include <png.h>

#include <csetjmp>
#include <cstring>
#include <string>
#include <vector>

#include "undertow/data/vision/codec.h"

namespace undertow::data::vision {
namespace {

struct Reader {
  png_structp png = nullptr;
  png_infop info = nullptr;
  Bytes file;
  std::size_t at = 0;
  char message[128] = {};
  std::vector<png_bytep> rows;

  explicit Reader(Bytes f) : file(f) {}
  ~Reader() { png_destroy_read_struct(&png, info ? &info : nullptr, nullptr); }

  static void on_error(png_structp png, png_const_charp text) {
    auto* self = static_cast<Reader*>(png_get_error_ptr(png));
    std::strncpy(self->message, text, sizeof(self->message) - 1);
    png_longjmp(png, 1);
  }
  static void on_warning(png_structp, png_const_charp) {}
  static void on_read(png_structp png, png_bytep out, std::size_t n) {
    auto* self = static_cast<Reader*>(png_get_io_ptr(png));
    if (n > self->file.size() - self->at) png_error(png, "the file ends too early");
    std::memcpy(out, self->file.data() + self->at, n);
    self->at += n;
  }

  bool header() {
    png = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, on_error, on_warning);
    if (!png) return false;
    info = png_create_info_struct(png);
    if (!info) return false;
    if (setjmp(png_jmpbuf(png))) return false;
    png_set_user_limits(png, 1 << 24, 1 << 24);
    png_set_read_fn(png, this, on_read);
    png_read_info(png, info);
    return true;
  }
  /// 8 bits a sample; channels as `mode` wants them. Grey conversion is done afterwards.
  bool set_up(ImageReadMode mode) {
    if (setjmp(png_jmpbuf(png))) return false;
    const int type = png_get_color_type(png, info), bits = png_get_bit_depth(png, info);
    if (type == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png);
    if (type == PNG_COLOR_TYPE_GRAY && bits < 8) png_set_expand_gray_1_2_4_to_8(png);
    if (bits == 16) png_set_strip_16(png);
    if (mode != ImageReadMode::kUnchanged) png_set_strip_alpha(png);
    else if (png_get_valid(png, info, PNG_INFO_tRNS)) png_set_tRNS_to_alpha(png);
    const bool grey = (type & PNG_COLOR_MASK_COLOR) == 0;
    // Grey with alpha has no 2-channel form in MindSpore: it becomes RGBA.
    if (grey &&
        (mode == ImageReadMode::kColor || (mode == ImageReadMode::kUnchanged &&
                                           ((type & PNG_COLOR_MASK_ALPHA) || png_get_valid(png, info, PNG_INFO_tRNS)))))
      png_set_gray_to_rgb(png);
    png_set_interlace_handling(png);
    png_read_update_info(png, info);
    return true;
  }
  bool read() {
    if (setjmp(png_jmpbuf(png))) return false;
    png_read_image(png, rows.data());
    png_read_end(png, nullptr);
    return true;
  }
  [[noreturn]] void fail(const char* op) const {
    throw DataError(fmt::format("{}: damaged PNG of {} bytes: {}", op, file.size(), message));
  }
};

struct Writer {
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::vector<std::uint8_t> out;
  std::string message;

  ~Writer() { png_destroy_write_struct(&png, info ? &info : nullptr); }
  static void on_error(png_structp png, png_const_charp text) {
    static_cast<Writer*>(png_get_error_ptr(png))->message = text;
    png_longjmp(png, 1);
  }
  static void on_write(png_structp png, png_bytep data, std::size_t n) {
    auto* self = static_cast<Writer*>(png_get_io_ptr(png));
    self->out.insert(self->out.end(), data, data + n);
  }
  bool run(const Extent& e, const std::uint8_t* in, int compression) {
    png = png_create_write_struct(PNG_LIBPNG_VER_STRING, this, on_error, Reader::on_warning);
    if (!png) return false;
    info = png_create_info_struct(png);
    if (!info) return false;
    if (setjmp(png_jmpbuf(png))) return false;
    png_set_write_fn(png, this, on_write, nullptr);
    png_set_compression_level(png, compression);
    png_set_IHDR(png, info, static_cast<png_uint_32>(e.w), static_cast<png_uint_32>(e.h), 8,
                 e.c == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png, info);
    for (std::int64_t i = 0; i < e.h; ++i) png_write_row(png, in + i * e.row());
    png_write_end(png, nullptr);
    return true;
  }
};

}  // namespace

std::pair<std::int64_t, std::int64_t> png_size(const char* op, Bytes file) {
  Reader r(file);
  if (!r.header()) r.fail(op);
  return {png_get_image_height(r.png, r.info), png_get_image_width(r.png, r.info)};
}

Tensor decode_png(const char* op, Bytes file, ImageReadMode mode) {
  Reader r(file);
  if (!r.header()) r.fail(op);
  const std::int64_t h = png_get_image_height(r.png, r.info), w = png_get_image_width(r.png, r.info);
  UNDERTOW_CHECK(h * w <= (std::int64_t{1} << 28), DataError,
                 "{}: an image of {} x {} pixels is larger than the 2^28 pixels that are taken", op, h, w);
  if (!r.set_up(mode)) r.fail(op);
  const std::int64_t c = png_get_channels(r.png, r.info);
  UNDERTOW_ASSERT(static_cast<std::int64_t>(png_get_rowbytes(r.png, r.info)) == w * c);
  Tensor y(DType::kUInt8, {h, w, c});
  for (std::int64_t i = 0; i < h; ++i) r.rows.push_back(static_cast<std::uint8_t*>(y.data()) + i * w * c);
  if (!r.read()) r.fail(op);
  if (mode != ImageReadMode::kGrayscale || c == 1) return y;
  return luma(y, {h, w, 3}).view({h, w, 1});
}

Tensor encode_png(const Tensor& image, int compression) {
  UNDERTOW_CHECK(compression >= 0 && compression <= 9, ValueError,
                 "encode_png: compression_level must be in [0, 9], got {}", compression);
  const Extent e = byte_image("encode_png", image);
  UNDERTOW_CHECK(e.h >= 1 && e.w >= 1 && e.h <= 1 << 24 && e.w <= 1 << 24, DataError,
                 "encode_png takes images of 1 to 2^24 rows and columns, got shape {}", image.shape().str());
  Writer w;
  UNDERTOW_CHECK(w.run(e, static_cast<const std::uint8_t*>(image.data()), compression), DataError, "encode_png: {}",
                 w.message);
  return Tensor(std::span<const std::uint8_t>(w.out));
}

}  // namespace undertow::data::vision
