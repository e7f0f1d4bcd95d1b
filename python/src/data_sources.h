// SPDX-License-Identifier: Apache-2.0
// python/src/data_sources.h: Python objects as sources and map operations of a pipeline.
#pragma once

#include <memory>

#include "python/src/common.h"
#include "undertow/data/dataset.h"

namespace undertow::python {

/// A Python object that may be dropped on any thread.
class SharedObject {
 public:
  explicit SharedObject(nb::object o) : object_(std::move(o)) {}
  SharedObject(const SharedObject&) = delete;
  ~SharedObject();
  nb::handle get() const { return object_; }

 private:
  nb::object object_;
};

/// A random-access object: source[i] for i in range(size).
std::shared_ptr<data::Source> random_source(nb::object source, std::int64_t size, std::string name);
/// `open()` gives an iterator at the start of each epoch. `single`: it can be asked once.
std::shared_ptr<data::Source> sequential_source(nb::callable open, bool single, std::string name);
/// Columns of a list of rows, or nothing where the rows are not arrays of equal shapes and dtypes.
std::optional<std::vector<Tensor>> snapshot(nb::handle rows);
/// A callable on arrays; `arity` as MapOp::arity.
std::shared_ptr<data::MapOp> python_map(nb::callable function, int arity, std::string name);
/// One after the other.
std::shared_ptr<data::MapOp> compose(std::vector<std::shared_ptr<data::MapOp>> operations);
std::shared_ptr<const data::Sampler> python_sampler(nb::object sampler);

/// An array, a number or nested lists as NumPy takes them: Python floats give float64.
Tensor row_tensor(nb::handle object);

}  // namespace undertow::python
