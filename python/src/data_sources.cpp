// SPDX-License-Identifier: Apache-2.0
// Python sources, samplers and map functions. Each call takes the GIL for itself; whoever waits for a pipeline has
// released it. A Python exception travels as it is (nb::python_error) to the thread that reads the data.
#include "python/src/data_sources.h"

#include "undertow/base/check.h"

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

/// The states of NumPy's and Python's global generators, to see whether a function draws from them.
nb::object generator_states() {
  const nb::object numpy_state = nb::module_::import_("numpy").attr("random").attr("get_state")();
  return nb::make_tuple(nb::bytes(static_cast<const char*>(nullptr), 0), numpy_state[1].attr("tobytes")(),
                        numpy_state[2], nb::module_::import_("random").attr("getstate")());
}

/// Watches the first call of a function, which describe() makes alone.
class DrawWatch {
 public:
  template <typename F>
  auto operator()(F&& call) {
    if (known_) return call();
    const nb::object before = generator_states();
    auto result = call();
    draws_ = !before.equal(generator_states());
    known_ = true;
    return result;
  }
  bool draws() const { return draws_; }

 private:
  bool known_ = false, draws_ = false;
};

class RandomSource final : public data::Source {
 public:
  RandomSource(nb::object source, std::int64_t size, std::string name)
      : source_(std::move(source)), size_(size), name_(std::move(name)) {}
  std::string name() const override { return name_; }
  std::int64_t size() const override { return size_; }
  void fetch(std::int64_t index, Row& out) override {
    const WithGil gil;
    const nb::object row = watch_([&] { return nb::object(source_.get()[nb::int_(index)]); });
    out = to_row(PyList_Check(row.ptr()) && nb::len(row) && holds_arrays(row) ? nb::object(nb::tuple(row)) : row,
                 "row " + std::to_string(index) + " of " + name_);
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
    const WithGil gil;
    const nb::object args = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(in.size())));
    for (std::size_t i = 0; i < in.size(); ++i)
      PyTuple_SET_ITEM(args.ptr(), static_cast<Py_ssize_t>(i), to_numpy(in[i]).release().ptr());
    const nb::object result = watch_([&] {
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

class Composed final : public data::MapOp {
 public:
  explicit Composed(std::vector<std::shared_ptr<data::MapOp>> ops) : ops_(std::move(ops)) {}
  std::string name() const override { return ops_.front()->name(); }
  int arity() const override { return ops_.front()->arity(); }
  bool thread_safe() const override { return all(&MapOp::thread_safe); }
  bool ordered() const override { return any(&MapOp::ordered); }
  bool waits() const override { return any(&MapOp::waits); }
  int nice() const override {
    int least = 19;
    for (const auto& op : ops_) least = std::min(least, op->nice());
    return least;
  }
  Row operator()(const Row& in, const RowContext& context) override {
    Row row = (*ops_.front())(in, context);
    RowContext c = context;
    for (std::size_t i = 1; i < ops_.size(); ++i) {
      c.op += 1u << 16;  // draws of its own
      row = (*ops_[i])(row, c);
    }
    return row;
  }

 private:
  bool all(bool (MapOp::*f)() const) const {
    for (const auto& op : ops_)
      if (!(op.get()->*f)()) return false;
    return true;
  }
  bool any(bool (MapOp::*f)() const) const {
    for (const auto& op : ops_)
      if ((op.get()->*f)()) return true;
    return false;
  }
  std::vector<std::shared_ptr<data::MapOp>> ops_;
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
    for (nb::handle i : nb::borrow<nb::object>(nb::iter(sampler_.get())))
      out.push_back(nb::cast<std::int64_t>(nb::int_(i)));
    return out;
  }
  SharedObject sampler_;
  mutable std::int64_t size_ = -1;
};

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
    return to_tensor(nb::module_::import_("numpy").attr("asarray")(o));
  return to_tensor(o);
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

std::shared_ptr<data::MapOp> compose(std::vector<std::shared_ptr<data::MapOp>> operations) {
  UNDERTOW_CHECK(!operations.empty(), ValueError, "map: the list of operations is empty");
  if (operations.size() == 1) return operations.front();
  return std::make_shared<Composed>(std::move(operations));
}

std::shared_ptr<const data::Sampler> python_sampler(nb::object sampler) {
  return std::make_shared<PythonSampler>(std::move(sampler));
}

}  // namespace undertow::python
