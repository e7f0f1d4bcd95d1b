// SPDX-License-Identifier: Apache-2.0
// Python sources, samplers and map functions. Each call takes the GIL for itself; whoever waits for a pipeline has
// released it. A Python exception travels as it is (nb::python_error) to the thread that reads the data.
#include "python/src/data_sources.h"

#include "python/src/data_draws.h"
#include "undertow/base/check.h"
#include "undertow/data/lazy.h"
#include "undertow/data/node.h"
#include "undertow/data/strings.h"

namespace undertow::python {
namespace {

using data::Row;
using data::RowContext;

/// Gives a pipeline thread one Python thread state for its whole life; without it every call would make one anew.
class ThreadState {
 public:
  ThreadState() {
    if (PyGILState_GetThisThreadState()) return;  // Python knows the thread already
    state_ = PyGILState_Ensure();
    kept_ = PyEval_SaveThread();
  }
  ~ThreadState() {
    if (!kept_ || !Py_IsInitialized()) return;
    PyEval_RestoreThread(kept_);
    PyGILState_Release(state_);
  }

 private:
  PyThreadState* kept_ = nullptr;
  PyGILState_STATE state_{};
};

/// Takes the GIL on a pipeline thread.
class WithGil {
 public:
  WithGil() : keep_(state()) {}

 private:
  static ThreadState& state() {
    thread_local ThreadState s;
    return s;
  }
  [[maybe_unused]] ThreadState& keep_;
  nb::gil_scoped_acquire gil_;
};

/// Copies a column out of a row; errors say where.
Row to_row(nb::handle value, const std::string& where) {
  Row row;
  const auto add = [&](nb::handle item) {
    try {
      row.push_back(row_tensor(item));
    } catch (const Error& e) {
      e.rethrow_with("in column " + std::to_string(row.size()) + " of " + where);
    }
  };
  if (PyTuple_Check(value.ptr()))
    for (nb::handle item : nb::borrow<nb::tuple>(value)) add(item);
  else add(value);
  return row;
}

class RandomSource final : public data::Source {
 public:
  RandomSource(nb::object source, std::int64_t size, std::string name)
      : source_(std::move(source)), size_(size), name_(std::move(name)) {}
  std::string name() const override { return name_; }
  std::int64_t size() const override { return size_; }
  void fetch_lazy(const RowContext& at, data::LazyRow& out) override {
    const auto lock = watch_.lock();
    const WithGil gil;
    const DrawScope draws(at);
    const nb::object row = watch_(at, [&] { return nb::object(source_.get()[nb::int_(at.sample)]); });
    out.refill(out.fuse()) =
        to_row(PyList_Check(row.ptr()) && nb::len(row) && holds_arrays(row) ? nb::object(nb::tuple(row)) : row,
               "row " + std::to_string(at.sample) + " of " + name_);
  }
  bool ordered() const override { return watch_.draws(); }
  int nice() const override { return 5; }

 private:
  static bool holds_arrays(nb::handle row) {
    for (nb::handle item : nb::borrow<nb::object>(row))
      if (!nb::hasattr(item, "shape")) return false;
    return true;
  }
  SharedObject source_;
  std::int64_t size_;
  std::string name_;
  DrawWatch watch_;
};

struct PassCounts {
  std::atomic<std::int64_t> rows{0};  // of the longest pass so far
};

class PythonCursor final : public data::Cursor {
 public:
  PythonCursor(nb::object iterator, std::string name, std::int64_t epoch, std::shared_ptr<PassCounts> counts)
      : iterator_(std::move(iterator)), name_(std::move(name)), epoch_(epoch), counts_(std::move(counts)) {}
  bool next(Row& out) override {
    const WithGil gil;
    const nb::object row = nb::steal(PyIter_Next(iterator_.get().ptr()));
    if (!row.is_valid()) {
      if (PyErr_Occurred()) throw nb::python_error();
      UNDERTOW_CHECK(
          rows_ > 0 || counts_->rows == 0, DataError,
          "{} gave {} rows in an earlier epoch and none in epoch {}: its __iter__ returns an iterator that is "
          "used up. Let __iter__ start over, or pass a generator function",
          name_, counts_->rows.load(), epoch_ + 1);
      return false;
    }
    out = to_row(row, "row " + std::to_string(rows_) + " of " + name_);
    ++rows_;
    if (rows_ > counts_->rows) counts_->rows = rows_;
    return true;
  }

 private:
  SharedObject iterator_;
  std::string name_;
  std::int64_t epoch_, rows_ = 0;
  std::shared_ptr<PassCounts> counts_;
};

class SequentialSource final : public data::Source {
 public:
  SequentialSource(nb::callable open, bool single, std::string name)
      : open_(std::move(open)), single_(single), name_(std::move(name)) {}
  std::string name() const override { return name_; }
  std::int64_t size() const override { return -1; }
  std::unique_ptr<data::Cursor> open(std::int64_t epoch) override {
    const WithGil gil;
    return std::make_unique<PythonCursor>(open_.get()(), name_, epoch, counts_);
  }
  bool single_pass() const override { return single_; }
  int nice() const override { return 5; }

 private:
  SharedObject open_;
  bool single_;
  std::string name_;
  std::shared_ptr<PassCounts> counts_ = std::make_shared<PassCounts>();
};

class PythonMap final : public data::MapOp {
 public:
  PythonMap(nb::callable function, int arity, std::string name)
      : function_(std::move(function)), arity_(arity), name_(std::move(name)) {}
  std::string name() const override { return name_; }
  int arity() const override { return arity_; }
  bool ordered() const override { return watch_.draws(); }
  int nice() const override { return 5; }
  Row operator()(const Row& in, const RowContext& context) override {
    const auto lock = watch_.lock();
    const WithGil gil;
    const DrawScope draws(context);
    const nb::object args = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(in.size())));
    for (std::size_t i = 0; i < in.size(); ++i)
      PyTuple_SET_ITEM(args.ptr(), static_cast<Py_ssize_t>(i), column_array(in[i]).release().ptr());
    const nb::object result = watch_(context, [&] {
      nb::object r = nb::steal(PyObject_Call(function_.get().ptr(), args.ptr(), nullptr));
      if (!r.is_valid()) throw nb::python_error();
      return r;
    });
    return to_row(result, "what " + name_ + " returned for row " + std::to_string(context.sample));
  }

 private:
  SharedObject function_;
  int arity_;
  std::string name_;
  DrawWatch watch_;
};

class PythonBatch final : public data::CollateOp {
 public:
  PythonBatch(nb::callable function, std::vector<int> inputs, int outputs, std::vector<int> place,
              std::vector<std::string> names)
      : function_(std::move(function)),
        inputs_(std::move(inputs)),
        outputs_(outputs),
        place_(std::move(place)),
        names_(std::move(names)) {}
  int nice() const override { return 5; }
  Row operator()(std::span<const Row> rows, const RowContext& context) override {
    std::vector<Tensor> made = call(rows, context);
    Row out(place_.size());
    std::vector<Tensor> column(rows.size());
    for (std::size_t k = 0; k < out.size(); ++k) {
      if (place_[k] >= 0) {
        out[k] = std::move(made[static_cast<std::size_t>(place_[k])]);
        continue;
      }
      for (std::size_t r = 0; r < rows.size(); ++r) column[r] = rows[r][static_cast<std::size_t>(~place_[k])];
      out[k] = data::stack_column(names_[k], column);
    }
    return out;
  }

 private:
  std::vector<Tensor> call(std::span<const Row> rows, const RowContext& context) {
    const auto lock = watch_.lock();
    const WithGil gil;
    const DrawScope draws(context);
    nb::list args;
    args.append(nb::int_(context.sample));
    args.append(nb::int_(context.epoch));
    for (const int c : inputs_) {
      nb::list column;
      for (const Row& row : rows) column.append(column_array(row[static_cast<std::size_t>(c)]));
      args.append(column);
    }
    nb::object result = watch_(context, [&] { return nb::object(function_.get()(*args)); });
    if (!PyTuple_Check(result.ptr())) result = nb::make_tuple(result);
    const nb::tuple columns = nb::borrow<nb::tuple>(result);
    UNDERTOW_CHECK(static_cast<int>(columns.size()) == outputs_, DataError,
                   "per_batch_map gave {} columns where {} are expected; name them in output_columns", columns.size(),
                   outputs_);
    std::vector<Tensor> made;
    for (std::size_t k = 0; k < columns.size(); ++k) {
      const std::string where = "column " + std::to_string(k) + " of what per_batch_map returned";
      if (!PyList_Check(columns[k].ptr())) {
        made.push_back(row_tensor(columns[k]));
        continue;
      }
      std::vector<Tensor> parts;
      for (nb::handle item : nb::borrow<nb::object>(columns[k])) parts.push_back(row_tensor(item));
      UNDERTOW_CHECK(!parts.empty(), DataError, "{} has no rows", where);
      made.push_back(data::stack_column(where, parts));
    }
    return made;
  }

  SharedObject function_;
  std::vector<int> inputs_;
  int outputs_;
  std::vector<int> place_;
  std::vector<std::string> names_;
  DrawWatch watch_;
};

class PythonSampler final : public data::Sampler {
 public:
  explicit PythonSampler(nb::object sampler) : sampler_(std::move(sampler)) {}
  std::int64_t size(std::int64_t rows) const override {
    const WithGil gil;
    if (size_ < 0) size_ = static_cast<std::int64_t>(indices().size());
    (void)rows;
    return size_;
  }
  void order(std::int64_t, std::uint64_t, std::int64_t, std::vector<std::int64_t>& out) const override {
    const WithGil gil;
    out = indices();
  }

 private:
  std::vector<std::int64_t> indices() const {
    std::vector<std::int64_t> out;
    for (nb::handle i : nb::borrow<nb::object>(nb::iter(sampler_.get()))) {
      UNDERTOW_CHECK(PyIndex_Check(i.ptr()), TypeError, "{}: a sampler gives row numbers, which are integers, got {}",
                     nb::cast<std::string>(sampler_.get().type().attr("__name__")), nb::cast<std::string>(nb::repr(i)));
      out.push_back(nb::cast<std::int64_t>(nb::int_(i)));
    }
    return out;
  }
  SharedObject sampler_;
  mutable std::int64_t size_ = -1;
};

}  // namespace

namespace {

/// From an array of NumPy's str_ or bytes_.
Tensor text_tensor_of(nb::handle array, bool unicode) {
  const nb::module_ numpy = nb::module_::import_("numpy");
  const std::int64_t bytes = nb::cast<std::int64_t>(array.attr("dtype").attr("itemsize"));
  const std::int64_t width = std::max<std::int64_t>(unicode ? bytes / 4 : bytes, 1);
  const std::string type = (unicode ? "<U" : "S") + std::to_string(width);
  nb::object whole = numpy.attr("ascontiguousarray")(array, type.c_str());
  // ascontiguousarray makes rank 0 rank 1, which the new last dimension takes up.
  nb::object shape = numpy.attr("shape")(array) + nb::make_tuple(1);
  const Tensor codes = to_tensor(whole.attr("reshape")(shape).attr("view")(unicode ? "uint32" : "uint8"));
  Tensor out = data::text_tensor(codes.dtype(), codes.shape());
  if (codes.nbytes()) std::memcpy(out.data(), codes.data(), codes.nbytes());
  return out;
}

}  // namespace

SharedObject::~SharedObject() {
  if (!Py_IsInitialized()) {
    (void)object_.release();
    return;
  }
  nb::gil_scoped_acquire gil;
  object_.reset();
}

Tensor row_tensor(nb::handle o) {
  // Only float scalars and lists differ from Tensor(): rows keep NumPy's float64 for them.
  if (PyFloat_CheckExact(o.ptr())) return Tensor::scalar(PyFloat_AS_DOUBLE(o.ptr()));
  if (PyList_Check(o.ptr()) || PyTuple_Check(o.ptr()))
    return row_tensor(nb::module_::import_("numpy").attr("asarray")(o));
  try {
    return to_tensor(o);
  } catch (const TypeError&) {
    if (PyUnicode_Check(o.ptr())) return data::text_of(nb::cast<std::string>(nb::str(o)));
    if (!nb::hasattr(o, "dtype")) throw;
    const auto kind = nb::cast<std::string>(nb::str(o.attr("dtype").attr("kind")));
    if (kind != "U" && kind != "S") throw;
    return text_tensor_of(o, kind == "U");
  }
}

nb::object column_array(const Tensor& column) {
  if (!data::is_text(column)) return to_numpy(column);
  const std::int64_t width = column.shape().back();
  const std::string type = (column.dtype() == DType::kUInt32 ? "<U" : "S") + std::to_string(width);
  return to_numpy(column).attr("view")(type.c_str()).attr("reshape")(data::text_shape(column));
}

std::shared_ptr<data::Source> random_source(nb::object source, std::int64_t size, std::string name) {
  return std::make_shared<RandomSource>(std::move(source), size, std::move(name));
}

std::shared_ptr<data::Source> sequential_source(nb::callable open, bool single, std::string name) {
  return std::make_shared<SequentialSource>(std::move(open), single, std::move(name));
}

std::optional<std::vector<Tensor>> snapshot(nb::handle rows) {
  const nb::object items = nb::steal(PySequence_Fast(rows.ptr(), ""));
  if (!items.is_valid()) throw nb::python_error();
  const auto n = PySequence_Fast_GET_SIZE(items.ptr());
  std::vector<Tensor> columns;
  try {
    for (Py_ssize_t i = 0; i < n; ++i) {
      const Row row = to_row(PySequence_Fast_GET_ITEM(items.ptr(), i), "");
      for (const Tensor& t : row)
        if (data::is_text(t)) return std::nullopt;  // of any length
      if (i == 0)
        for (const Tensor& t : row) {
          Shape shape{n};
          for (const auto extent : t.shape()) shape.push_back(extent);
          columns.emplace_back(t.dtype(), shape);
        }
      if (row.size() != columns.size()) return std::nullopt;
      for (std::size_t c = 0; c < columns.size(); ++c) {
        Shape shape{n};
        for (const auto extent : row[c].shape()) shape.push_back(extent);
        if (row[c].dtype() != columns[c].dtype() || !(shape == columns[c].shape())) return std::nullopt;
        if (row[c].nbytes())
          std::memcpy(static_cast<std::byte*>(columns[c].data()) + static_cast<std::size_t>(i) * row[c].nbytes(),
                      row[c].data(), row[c].nbytes());
      }
    }
  } catch (const Error&) {
    return std::nullopt;
  } catch (nb::python_error&) {
    return std::nullopt;
  }
  return columns;
}

std::shared_ptr<data::MapOp> python_map(nb::callable function, int arity, std::string name) {
  return std::make_shared<PythonMap>(std::move(function), arity, std::move(name));
}

std::shared_ptr<data::CollateOp> python_batch(nb::callable function, std::vector<int> inputs, int outputs,
                                              std::vector<int> place, std::vector<std::string> names) {
  return std::make_shared<PythonBatch>(std::move(function), std::move(inputs), outputs, std::move(place),
                                       std::move(names));
}

std::function<std::int64_t(std::int64_t, std::int64_t)> python_batch_size(nb::callable function) {
  return [keep = std::make_shared<SharedObject>(std::move(function))](std::int64_t batch, std::int64_t epoch) {
    const WithGil gil;
    const nb::object size = keep->get()(batch, epoch);
    if (PyBool_Check(size.ptr()) || !PyIndex_Check(size.ptr()))
      throw TypeError("batch: the function for batch_size must give an integer, it gave " + repr_of(size));
    return nb::cast<std::int64_t>(nb::int_(size));
  };
}

std::function<std::int64_t(const Row&)> python_length(nb::callable function) {
  return [keep = std::make_shared<SharedObject>(std::move(function))](const Row& row) {
    const WithGil gil;
    nb::list args;
    for (const Tensor& t : row) args.append(column_array(t));
    return nb::cast<std::int64_t>(nb::int_(keep->get()(*args)));
  };
}

std::shared_ptr<const data::Sampler> python_sampler(nb::object sampler) {
  return std::make_shared<PythonSampler>(std::move(sampler));
}

}  // namespace undertow::python
