// SPDX-License-Identifier: Apache-2.0
// Datasets: the handles behind the Python classes, iterators, samplers, native operations, settings.
#include <mutex>
#include <set>

#include "python/src/data_sources.h"
#include "undertow/base/check.h"
#include "undertow/data/transforms.h"

namespace undertow::python {
namespace {

using data::Dataset;
using MapPtr = std::shared_ptr<data::MapOp>;
using SamplerPtr = std::shared_ptr<const data::Sampler>;
using NoGil = nb::call_guard<nb::gil_scoped_release>;

/// So that Python can hold what has no public class.
struct SamplerHandle {
  SamplerPtr sampler;
};
struct MapHandle {
  MapPtr op;
};

data::SourceOptions source_options(std::optional<bool> shuffle, int workers, std::int64_t samples, int shards,
                                   int shard, std::optional<SamplerHandle> sampler) {
  return {shuffle, workers, samples, shards, shard, sampler ? sampler->sampler : nullptr};
}

/// A copy for small columns, the memory itself for large ones.
nb::object column(const Tensor& t, bool numpy) {
  constexpr std::size_t kCopyBelow = std::size_t{1} << 16;
  if (!numpy) return wrap(t);
  return t.nbytes() < kCopyBelow || t.dtype() == DType::kBFloat16 ? to_numpy(t) : numpy_view(t);
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
      UNDERTOW_CHECK(rows_, RuntimeError, "the iterator was closed");
      row = rows_->next();
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
  std::vector<std::string> names_;
  std::mutex mutex_;  // next() and close() on different threads
  std::unique_ptr<data::RowIterator> rows_;
  bool dict_, numpy_;
};

void bind_dataset(nb::module_& m) {
  nb::class_<Dataset> c(m, "Dataset");
  c.def("batch", [](const Dataset& d, std::int64_t n, bool drop,
                    int workers) { return d.batch(n, {.drop_remainder = drop, .num_parallel_workers = workers}); })
      .def("map", [](const Dataset& d, const MapHandle& op, std::vector<std::string> in, std::vector<std::string> out,
                     int workers) { return d.map(op.op, {std::move(in), std::move(out), workers}); })
      .def("shuffle", &Dataset::shuffle)
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
                   for (const Tensor& t : row) args.append(to_numpy(t));
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
      .def("output_shapes", &Dataset::output_shapes, NoGil())
      .def("output_types", [](const Dataset& d) {
        std::vector<DType> types;
        {
          nb::gil_scoped_release release;
          types = d.output_types();
        }
        return types;
      });
  nb::class_<Iterator>(m, "Iterator")
      .def(nb::init<const Dataset&, std::int64_t, bool, bool>())
      .def("__iter__", [](nb::handle self) { return nb::borrow(self); })
      .def("__next__", &Iterator::next)
      .def("get_next", &Iterator::next)
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
             int shard, std::optional<SamplerHandle> sampler) {
            new (self)
                data::SourceOptions(source_options(shuffle, workers, samples, shards, shard, std::move(sampler)));
          },
          "shuffle"_a.none(), "num_parallel_workers"_a, "num_samples"_a, "num_shards"_a, "shard_id"_a,
          "sampler"_a.none());
  m.def("random_access", [](nb::object source, std::int64_t size, std::string name, std::vector<std::string> names,
                            const data::SourceOptions& o) {
    return Dataset(random_source(std::move(source), size, std::move(name)), std::move(names), o);
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

void bind_map_ops(nb::module_& m) {
  nb::class_<MapHandle>(m, "MapOp").def("__call__", [](const MapHandle& self, const nb::args& args) -> nb::object {
    data::Row row;
    for (nb::handle a : args) row.push_back(row_tensor(a));
    const data::Row out = (*self.op)(row, data::RowContext{});
    if (out.size() == 1) return to_numpy(out[0]);
    nb::list l;
    for (const Tensor& t : out) l.append(to_numpy(t));
    return nb::tuple(l);
  });
  m.def("python_map", [](nb::callable f, int arity, std::string name) {
    return MapHandle{python_map(std::move(f), arity, std::move(name))};
  });
  m.def("compose", [](const std::vector<MapHandle>& handles) {
    std::vector<MapPtr> list;
    for (const MapHandle& h : handles) list.push_back(h.op);
    return MapHandle{compose(std::move(list))};
  });
  m.def("type_cast", [](DType d) { return MapHandle{data::transforms::TypeCast(d)}; });
  m.def("rescale", [](double a, double b) { return MapHandle{data::vision::Rescale(a, b)}; });
  m.def("normalize", [](std::vector<double> mean, std::vector<double> std, bool is_hwc) {
    return MapHandle{data::vision::Normalize(std::move(mean), std::move(std), is_hwc)};
  });
  m.def("hwc2chw", [] { return MapHandle{data::vision::HWC2CHW()}; });
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
  m.def("python_sampler", [handle](nb::object s) { return handle(python_sampler(std::move(s))); });
}

}  // namespace

void bind_data(nb::module_& m) {
  bind_samplers(m);
  bind_map_ops(m);
  bind_dataset(m);
  bind_sources(m);
  m.def("config", [](const std::string& key) -> nb::object {
    const data::Config& c = data::config();
    if (key == "seed") return nb::int_(c.seed);
    if (key == "num_parallel_workers") return nb::int_(c.workers());
    return nb::int_(c.prefetch_size);
  });
  m.def("set_config", [](const std::string& key, std::int64_t value) {
    data::Config& c = data::config();
    if (key == "seed") c.seed = static_cast<std::uint64_t>(value);
    else if (key == "num_parallel_workers") c.num_parallel_workers = static_cast<int>(value);
    else c.prefetch_size = static_cast<int>(value);
  });
}

}  // namespace undertow::python
