// SPDX-License-Identifier: Apache-2.0
// tensor/text.h: values as text.
#pragma once

#include <string>

#include "undertow/tensor/tensor.h"

namespace undertow {

/// As NumPy's str() shows an array: columns of equal width, at most 8 decimals, exponents where a column spans more
/// than three orders of magnitude or holds very large or small numbers, the middle left out beyond 1,000 elements,
/// lines of at most 75 characters. Rank 0 is the number alone. Throws TraceError for a traced tensor.
std::string text_of(const Tensor& tensor);

}  // namespace undertow
