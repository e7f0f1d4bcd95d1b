// SPDX-License-Identifier: Apache-2.0
// Datasets: the handles behind the Python classes, iterators, samplers, native operations, settings.
#include <mutex>
#include <set>

#include "python/src/data_draws.h"
#include "python/src/data_sources.h"
#include "undertow/base/check.h"
#include "undertow/data/processes.h"
#include "undertow/data/strings.h"

namespace undertow::python {
namespace {

using data::Dataset;
using SamplerPtr = std::shared_ptr<const data::Sampler>;
using NoGil = nb::call_guard<nb::gil_scoped_release>;

/// So that Python can hold what has no public class.
struct SamplerHandle {
  SamplerPtr sampler;
};

struct CollateHandle {
  std::shared_ptr<data::CollateOp> op;
};

/// From {column: (shape or None, value)}; extents of the shape may be None.
data::PadInfo pad_info(const nb::dict& padding) {
  data::PadInfo info;
  for (const auto& [column, how] : padding) {
    data::Padding p;
    const nb::tuple pair = nb::cast<nb::tuple>(how);
    if (!pair[0].is_none()) {
      p.shape.emplace();
      for (nb::handle d : nb::cast<nb::list>(nb::list(pair[0])))
        p.shape->push_back(d.is_none() ? -1 : nb::cast<std::int64_t>(d));
    }
    if (PyUnicode_Check(pair[1].ptr())) p.text = nb::cast<std::string>(pair[1]);
    else p.value = nb::cast<double>(pair[1]);
    info.emplace(nb::cast<std::string>(column), std::move(p));
  }
  return info;
}

data::SourceOptions source_options(std::optional<bool> shuffle, int workers, std::int64_t samples, int shards,
                                   int shard, std::optional<SamplerHandle> sampler, int mode) {
  return {shuffle,
          workers,
          samples,
          shards,
          shard,
          sampler ? sampler->sampler : nullptr,
          static_cast<data::ShuffleMode>(mode)};
}

/// A copy for small columns, the memory itself for large ones.
nb::object column(const Tensor& t, bool numpy) {
  constexpr std::size_t kCopyBelow = std::size_t{1} << 16;
  if (data::is_text(t)) return column_array(t);  // a Tensor holds numbers
  if (!numpy) return wrap(t);
  return t.nbytes() < kCopyBelow || t.dtype() == DType::kBFloat16 ? to_numpy(t) : numpy_view(t);
}

/// Ctrl-C ends the wait for a row.
void check_signals() {
  const nb::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

class Iterator {
 public:
  Iterator(const Dataset& dataset, std::int64_t epochs, bool dict, bool numpy) : dict_(dict), numpy_(numpy) {
    {
      nb::gil_scoped_release release;
      names_ = dataset.get_col_names();
      rows_ = std::make_unique<data::RowIterator>(dataset, epochs);
    }
    live().insert(this);
  }
  ~Iterator() { close(); }
  nb::object next() {
    std::optional<data::Row> row;
    {
      nb::gil_scoped_release release;
      const std::lock_guard lock(mutex_);
      row = rows()->next(check_signals);
    }
    if (!row) throw nb::stop_iteration();
    if (dict_) {
      nb::dict d;
      for (std::size_t i = 0; i < row->size(); ++i) d[names_[i].c_str()] = column((*row)[i], numpy_);
      return d;
    }
    nb::list l;
    for (const Tensor& t : *row) l.append(column(t, numpy_));
    return l;
  }
  data::Position position() { return rows()->state(); }
  data::Profile profile() {
    const nb::gil_scoped_release release;
    return rows()->profile();
  }
  /// Ends its threads, which may need the GIL for that.
  void close() {
    live().erase(this);
    nb::gil_scoped_release release;
    if (rows_) rows_->stop();
    const std::lock_guard lock(mutex_);
    rows_.reset();
  }
  /// All that there are; guarded by the GIL.
  static std::set<Iterator*>& live() {
    static auto* set = new std::set<Iterator*>;
    return *set;
  }

 private:
  data::RowIterator* rows() const {
    UNDERTOW_CHECK(rows_, RuntimeError, "the iterator was closed");
    return rows_.get();
  }
  std::vector<std::string> names_;
  std::mutex mutex_;  // next() and close() on different threads
  std::unique_ptr<data::RowIterator> rows_;
  bool dict_, numpy_;
};

void bind_dataset(nb::module_& m) {
  nb::class_<Dataset> c(m, "Dataset");
  nb::class_<CollateHandle>(m, "Collate");
  m.def("python_batch", [](nb::callable f, std::vector<int> inputs, int outputs, std::vector<int> place,
                           std::vector<std::string> names) {
    return CollateHandle{python_batch(std::move(f), std::move(inputs), outputs, std::move(place), std::move(names))};
  });
  m.def("in_processes", [](const CollateHandle& f) { return CollateHandle{data::in_processes(f.op)}; });
  c.def(
       "batch",
       [](const Dataset& d, nb::object size, bool drop, int workers, std::optional<CollateHandle> collate,
          std::vector<std::string> names) {
         data::BatchOptions o{.drop_remainder = drop, .num_parallel_workers = workers};
         if (collate) o.collate = collate->op;
         o.output_columns = std::move(names);
         if (PyCallable_Check(size.ptr())) o.batch_size = python_batch_size(nb::borrow<nb::callable>(size));
         return d.batch(o.batch_size ? 1 : nb::cast<std::int64_t>(size), o);
       },
       "size"_a, "drop"_a, "workers"_a, "collate"_a.none() = nb::none(), "names"_a = std::vector<std::string>())
      .def("padded_batch",
           [](const Dataset& d, std::int64_t n, nb::dict padding, bool drop, int workers) {
             return d.padded_batch(n, pad_info(padding), {.drop_remainder = drop, .num_parallel_workers = workers});
           })
      .def(
          "bucket_batch",
          [](const Dataset& d, const std::vector<std::string>& columns, std::vector<std::int64_t> boundaries,
             std::vector<std::int64_t> sizes, nb::object length, nb::dict padding, bool to_boundary, bool drop) {
            data::BucketOptions o{std::move(boundaries), std::move(sizes), {}, pad_info(padding), to_boundary, drop};
            if (!length.is_none()) o.length = python_length(nb::borrow<nb::callable>(length));
            return d.bucket_batch_by_length(columns, o);
          },
          "columns"_a, "boundaries"_a, "sizes"_a, "length"_a.none(), "padding"_a, "to_boundary"_a, "drop"_a)
      .def("cache", &Dataset::cache)
      .def("classes", &Dataset::classes)
      .def("map",
           [](const Dataset& d, const MapHandle& op, std::vector<std::string> in, std::vector<std::string> out,
              int workers, nb::list callbacks) {
             return d.map(op.op, {std::move(in), std::move(out), workers, python_callbacks(callbacks)});
           })
      .def("shuffle", [](const Dataset& d, std::int64_t n) { return d.shuffle(n); })
      .def("repeat", &Dataset::repeat)
      .def("take", &Dataset::take)
      .def("skip", &Dataset::skip)
      .def("rename", &Dataset::rename)
      .def("project", &Dataset::project)
      .def("zip", &Dataset::zip)
      .def("concat", &Dataset::concat)
      .def("filter",
           [](const Dataset& d, nb::callable f, const std::vector<std::string>& in) {
             auto keep = std::make_shared<SharedObject>(std::move(f));
             return d.filter(
                 [keep](const data::Row& row) {
                   nb::gil_scoped_acquire gil;
                   nb::list args;
                   for (const Tensor& t : row) args.append(column_array(t));
                   const nb::object result = keep->get()(*args);
                   const int truth = PyObject_IsTrue(result.ptr());
                   if (truth < 0) throw nb::python_error();
                   return truth == 1;
                 },
                 in);
           })
      .def("split", &Dataset::split, NoGil())
      .def("get_dataset_size", &Dataset::get_dataset_size, NoGil())
      .def("known_size", &Dataset::known_size)
      .def("get_batch_size", &Dataset::get_batch_size)
      .def("get_repeat_count", &Dataset::get_repeat_count)
      .def("get_col_names", &Dataset::get_col_names)
      .def("specs", [](const Dataset& d) {
        std::vector<data::ColumnSpec> specs;
        {
          nb::gil_scoped_release release;
          specs = d.describe();
        }
        nb::list out;  // (dtype, shape, whether it is of texts); texts without their width
        for (const data::ColumnSpec& s : specs) {
          const Shape shape = s.text ? Shape(std::span(s.shape.begin(), s.shape.end() - 1)) : s.shape;
          out.append(nb::make_tuple(s.dtype, shape, s.text));
        }
        return out;
      });
  bind_progress(m, c);
  nb::class_<Iterator>(m, "Iterator")
      .def(nb::init<const Dataset&, std::int64_t, bool, bool>())
      .def("__iter__", [](nb::handle self) { return nb::borrow(self); })
      .def("__next__", &Iterator::next)
      .def("get_next", &Iterator::next)
      .def("_position", &Iterator::position)
      .def("profile", &Iterator::profile, "The figures so far, as Dataset.last_profile.")
      .def("stop", &Iterator::close, "Ends it and its threads.");
  m.def("_close_iterators", [] {
    while (!Iterator::live().empty()) (*Iterator::live().begin())->close();
  });
}

void bind_sources(nb::module_& m) {
  nb::class_<data::SourceOptions>(m, "SourceOptions")
      .def(
          "__init__",
          [](data::SourceOptions* self, std::optional<bool> shuffle, int workers, std::int64_t samples, int shards,
             int shard, std::optional<SamplerHandle> sampler, int mode) {
            new (self)
                data::SourceOptions(source_options(shuffle, workers, samples, shards, shard, std::move(sampler), mode));
          },
          "shuffle"_a.none(), "num_parallel_workers"_a, "num_samples"_a, "num_shards"_a, "shard_id"_a,
          "sampler"_a.none(), "mode"_a = 0);
  m.def("random_access", [](nb::object source, std::int64_t size, std::string name, std::vector<std::string> names,
                            const data::SourceOptions& o, bool processes) {
    const auto rows = random_source(std::move(source), size, std::move(name));
    return Dataset(processes ? data::in_processes(rows) : rows, std::move(names), o);
  });
  m.def("sequential", [](nb::callable open, bool single, std::string name, std::vector<std::string> names,
                         const data::SourceOptions& o) {
    return Dataset(sequential_source(std::move(open), single, std::move(name)), std::move(names), o);
  });
  m.def("snapshot", &snapshot);
  m.def("arrays", [](nb::handle columns, std::vector<std::string> names, const data::SourceOptions& o) {
    std::vector<Tensor> tensors;
    for (nb::handle column : nb::borrow<nb::object>(columns)) tensors.push_back(row_tensor(column));
    return data::NumpySlicesDataset(std::move(tensors), std::move(names), o);
  });
  m.def("mnist", &data::MnistDataset, NoGil());
  m.def("fashion_mnist", &data::FashionMnistDataset, NoGil());
}

void bind_samplers(nb::module_& m) {
  nb::class_<SamplerHandle>(m, "Sampler")
      .def("order", [](const SamplerHandle& s, std::int64_t rows, std::uint64_t seed, std::int64_t epoch) {
        std::vector<std::int64_t> out;
        s.sampler->order(rows, seed, epoch, out);
        return out;
      });
  const auto handle = [](SamplerPtr p) { return SamplerHandle{std::move(p)}; };
  m.def("sequential_sampler",
        [handle](std::int64_t s, std::int64_t n) { return handle(data::SequentialSampler(s, n)); });
  m.def("random_sampler", [handle](bool r, std::int64_t n) { return handle(data::RandomSampler(r, n)); });
  m.def("subset_sampler",
        [handle](std::vector<std::int64_t> i, std::int64_t n) { return handle(data::SubsetSampler(std::move(i), n)); });
  m.def("subset_random_sampler", [handle](std::vector<std::int64_t> i, std::int64_t n) {
    return handle(data::SubsetRandomSampler(std::move(i), n));
  });
  m.def("weighted_random_sampler", [handle](std::vector<double> w, std::int64_t n, bool r) {
    return handle(data::WeightedRandomSampler(std::move(w), n, r));
  });
  m.def("distributed_sampler", [handle](int shards, int id, bool shuffle, std::int64_t n, std::int64_t offset) {
    return handle(data::DistributedSampler(shards, id, shuffle, n, offset));
  });
  m.def("chained_sampler", [handle](const SamplerHandle& child, const SamplerHandle& parent) {
    return handle(data::ChainedSampler(child.sampler, parent.sampler));
  });
  m.def("pk_sampler",
        [handle](std::int64_t val, std::int64_t classes, bool shuffle, std::string column, std::int64_t n) {
          return handle(data::PKSampler(val, classes, shuffle, std::move(column), n));
        });
  m.def("python_sampler", [handle](nb::object s) { return handle(python_sampler(std::move(s))); });
}

}  // namespace

void bind_text(nb::module_& m);  // data_text.cpp

void bind_data(nb::module_& m) {
  set_python_fork_hooks();
  bind_samplers(m);
  bind_map_ops(m);
  auto text = m.def_submodule("text");
  bind_text(text);
  bind_dataset(m);
  bind_sources(m);
  m.def("config", [](const std::string& key) -> nb::object {
    const data::Config& c = data::config();
    if (key == "seed") return nb::int_(c.seed);
    if (key == "num_parallel_workers") return nb::int_(c.workers());
    if (key == "fuse") return nb::int_(c.fuse ? 1 : 0);
    if (key == "scaled_decode") return nb::int_(c.scaled_decode ? 1 : 0);
    if (key == "autotune") return nb::int_(c.autotune ? 1 : 0);
    if (key == "callback_timeout") return nb::int_(c.callback_timeout);
    if (key == "shuffle_rows") return nb::int_(c.shuffle_rows);
    if (key == "shuffle_bytes") return nb::int_(c.shuffle_bytes);
    return nb::int_(c.prefetch_size);
  });
  m.def("set_config", [](const std::string& key, std::int64_t value) {
    data::Config& c = data::config();
    if (key == "seed") {
      c.seed = static_cast<std::uint64_t>(value);
      restart_draws();
    }
    if (key == "num_parallel_workers") c.num_parallel_workers = static_cast<int>(value);
    if (key == "prefetch_size") c.prefetch_size = static_cast<int>(value);
    if (key == "fuse") c.fuse = value != 0;
    if (key == "scaled_decode") c.scaled_decode = value != 0;
    if (key == "autotune") c.autotune = value != 0;
    if (key == "callback_timeout") c.callback_timeout = static_cast<int>(value);
    if (key == "shuffle_rows") c.shuffle_rows = value;
    if (key == "shuffle_bytes") c.shuffle_bytes = value;
  });
  bind_files(m);
}

}  // namespace undertow::python
