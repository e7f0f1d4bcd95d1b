// SPDX-License-Identifier: Apache-2.0
// python/src/data_sources.h: Python objects as sources and map operations of a pipeline.
#pragma once

#include <memory>

#include "python/src/common.h"
#include "undertow/data/callback.h"
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
std::shared_ptr<const data::Sampler> python_sampler(nb::object sampler);

/// So that Python can hold what has no public class.
struct MapHandle {
  std::shared_ptr<data::MapOp> op;
};
void bind_map_ops(nb::module_& m);

/// While a Python function runs for a row: what the random operations that it calls draw from.
class DrawScope {
 public:
  explicit DrawScope(const data::RowContext& context);
  ~DrawScope();
  DrawScope(const DrawScope&) = delete;

 private:
  const data::RowContext* before_;
  std::size_t calls_;
};
/// Calls without a pipeline start their draws over; for a new seed.
void restart_draws();

/// An array, a number, a text or nested lists as NumPy takes them: Python floats give float64, bytes uint8.
Tensor row_tensor(nb::handle object);
/// The NumPy array of a column: of str_ or bytes_ for texts.
nb::object column_array(const Tensor& column);

/// `function(batch, epoch, *columns)` of the columns `inputs`, each a list of the batch's arrays, gives `outputs`
/// columns: lists of arrays, or whole arrays. Column k of the batch is its output place[k], or column ~place[k] of the
/// rows.
std::shared_ptr<data::CollateOp> python_batch(nb::callable function, std::vector<int> inputs, int outputs,
                                              std::vector<int> place, std::vector<std::string> names);
/// `function(batch, epoch)` gives a whole number.
std::function<std::int64_t(std::int64_t, std::int64_t)> python_batch_size(nb::callable function);
/// `function(*columns)` gives a whole number.
std::function<std::int64_t(const data::Row&)> python_length(nb::callable function);

/// Instances of Python's DSCallback.
std::vector<std::shared_ptr<data::DSCallback>> python_callbacks(const nb::list& callbacks);
/// Positions, profiles, callbacks, sync_wait; data_progress.cpp.
void bind_progress(nb::module_& m, nb::class_<data::Dataset>& dataset);
/// MindRecord files and the datasets that read files; data_files.cpp.
void bind_files(nb::module_& m);

}  // namespace undertow::python
