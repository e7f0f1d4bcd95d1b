// SPDX-License-Identifier: Apache-2.0
// data/vision/resize.h: images in other sizes.
#pragma once

#include "undertow/data/vision/rows.h"

namespace undertow::data::vision {

struct Resizing {
  std::int64_t h = 0, w = 0;
  Inter inter = Inter::kLinear;
  Rules rules = Rules::kArray;
};

/// Throws DataError, starting with `op`, where an image of these extents and dtype cannot be resized so.
void check_resize(const char* op, const Extent& e, DType dtype, const Resizing& r);
/// The part of the resized image, in its order or with the columns reversed. float16 is resized as float32, which is
/// for the caller to see to. Defined for all dtypes; all but kNearest work on those that check_resize() lets pass.
template <typename T>
void resize(const View<T>& in, const Resizing& r, const Rect& part, bool reversed, Rows<T>& out);

}  // namespace undertow::data::vision
