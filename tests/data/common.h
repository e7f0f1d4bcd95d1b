// SPDX-License-Identifier: Apache-2.0
// tests/data/common.h: small sources, and ways to read a dataset to its end.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "undertow/data/dataset.h"
#include "undertow/data/pipeline.h"

namespace undertow::data {

using Ints = std::vector<std::int64_t>;

/// Rows of one int32 column "x": 0, 1, ..., n - 1; random access.
inline Dataset numbers(std::int64_t n, const SourceOptions& options = {.shuffle = false}) {
  return GeneratorDataset([](std::int64_t i) { return Row{Tensor::scalar(static_cast<std::int32_t>(i))}; }, n, {"x"},
                          options);
}
/// The same from an array.
inline Dataset slices(std::int64_t n, const SourceOptions& options = {.shuffle = false}) {
  std::vector<std::int32_t> v(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) v[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(i);
  return NumpySlicesDataset({Tensor(v)}, {"x"}, options);
}
/// The same, sequential.
inline Dataset sequence(std::int64_t n, const SourceOptions& options = {}) {
  return GeneratorDataset(
      [n]() -> RowGenerator {
        return [n, i = std::int64_t{0}]() mutable -> std::optional<Row> {
          if (i == n) return std::nullopt;
          return Row{Tensor::scalar(static_cast<std::int32_t>(i++))};
        };
      },
      {"x"}, options);
}

inline Ints values(const Tensor& t) {
  const Tensor wide = t.to(DType::kInt64);
  return {wide.data_as<std::int64_t>(), wide.data_as<std::int64_t>() + wide.size()};
}
/// Column 0 of one epoch, all rows in a line.
inline Ints epoch(RowIterator& it) {
  Ints all;
  while (auto row = it.next()) {
    const Ints v = values((*row)[0]);
    all.insert(all.end(), v.begin(), v.end());
  }
  return all;
}
inline std::vector<Ints> epochs(const Dataset& d, int n) {
  std::vector<Ints> out;
  auto it = d.create_tuple_iterator(n);
  for (int e = 0; e < n; ++e) out.push_back(epoch(it));
  return out;
}
inline Ints all(const Dataset& d) { return epochs(d, 1)[0]; }
/// Rows per batch of one epoch.
inline Ints batch_sizes(const Dataset& d) {
  Ints out;
  for (const Row& r : d) out.push_back(r[0].shape(0));
  return out;
}
inline Ints range(std::int64_t n, std::int64_t from = 0) {
  Ints v;
  for (std::int64_t i = from; i < n; ++i) v.push_back(i);
  return v;
}
inline Ints sorted(Ints v) {
  std::sort(v.begin(), v.end());
  return v;
}
/// The message of the E that `f` throws.
template <typename E, typename F>
std::string message(F&& f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  } catch (const std::exception& e) {
    return std::string("another exception: ") + e.what();
  }
  return "no exception";
}

}  // namespace undertow::data
