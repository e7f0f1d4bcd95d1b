// SPDX-License-Identifier: Apache-2.0
// data/strings.h: columns of texts.
//
// A text column is a Tensor as NumPy would lay it out: of code points (uint32, NumPy's str_) or of bytes (uint8,
// NumPy's bytes_), whose last dimension is the longest text's length, with zeros behind shorter ones. What makes it a
// text is its storage. Operations on numbers see numbers; texts of different lengths are widened when they are batched.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "undertow/data/row.h"

namespace undertow::data {

/// Uninitialised texts: `shape` is that of the texts, `width` the room of each; dtype kUInt32 or kUInt8.
Tensor text_tensor(DType dtype, const Shape& shape, std::int64_t width);
/// The same, given the whole shape with the width last.
Tensor text_tensor(DType dtype, const Shape& whole);
bool is_text(const Tensor& tensor);
/// The shape of the texts, without their width.
Shape text_shape(const Tensor& tensor);

/// One text from UTF-8, of rank 0 (plus the width). What is no UTF-8 becomes U+FFFD.
Tensor text_of(std::string_view utf8);
/// A list of texts.
Tensor text_of(std::span<const std::string> utf8);
/// All texts in UTF-8 (of bytes: as they are), in row-major order.
std::vector<std::string> texts_of(const Tensor& tensor);

/// The same texts with more room. width: at least what there is.
Tensor widen(const Tensor& text, std::int64_t width);

/// A tensor for what `spec` says.
Tensor tensor_for(const ColumnSpec& spec);

}  // namespace undertow::data
