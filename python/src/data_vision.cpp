// SPDX-License-Identifier: Apache-2.0
// Native map operations: their constructors by name, and calls of them without a pipeline.
#include <functional>
#include <map>
#include <tuple>

#include "python/src/data_sources.h"
#include "undertow/base/check.h"
#include "undertow/data/column_op.h"
#include "undertow/data/config.h"
#include "undertow/data/processes.h"
#include "undertow/data/transforms.h"
#include "undertow/data/vision/codec.h"
#include "undertow/data/vision/noise.h"

namespace undertow::python {
namespace {

using data::RowContext;
using MapPtr = std::shared_ptr<data::MapOp>;
namespace transforms = data::transforms;
namespace vision = data::vision;

thread_local const RowContext* current_row = nullptr;
thread_local std::size_t calls_in_row = 0;
std::int64_t calls_so_far = 0;  // guarded by the GIL

/// Draws of a call: the row's, at a place of their own, or where no pipeline runs those of a row by itself.
RowContext call_context() {
  if (current_row) return data::inner(*current_row, ++calls_in_row);
  constexpr std::uint32_t kOutside = 0xFFFFFFFF;
  return {data::config().seed, 0, calls_so_far++, kOutside};
}

// ---- Constructors by name. Python has checked and converted the arguments; they cross as they lie in a tuple.

class Arguments {
 public:
  explicit Arguments(nb::tuple args) : args_(std::move(args)) {}

  /// The next one. Enumerations cross as their numbers, operations as handles.
  template <typename T>
  T get() {
    if constexpr (std::is_same_v<T, std::vector<MapPtr>>) return operations(value<std::vector<MapHandle>>());
    else if constexpr (std::is_same_v<T, Tensor>) return row_tensor(next());
    else if constexpr (std::is_same_v<T, std::optional<Tensor>>) return tensor_or_none(next());
    else if constexpr (std::is_enum_v<T> && !std::is_same_v<T, DType>) return static_cast<T>(value<int>());
    else return value<T>();
  }
  static std::vector<MapPtr> operations(const std::vector<MapHandle>& handles) {
    std::vector<MapPtr> out;
    for (const MapHandle& h : handles) out.push_back(h.op);
    return out;
  }

 private:
  nb::handle next() {
    UNDERTOW_ASSERT(at_ < args_.size());
    return args_[at_++];
  }
  template <typename T>
  T value() {
    return nb::cast<T>(next());
  }
  static std::optional<Tensor> tensor_or_none(nb::handle o) {
    return o.is_none() ? std::optional<Tensor>() : std::optional<Tensor>(row_tensor(o));
  }

  nb::tuple args_;
  std::size_t at_ = 0;
};

using Maker = MapPtr (*)(Arguments&);

template <typename... A>
MapPtr call(MapPtr (*make)(A...), Arguments& args) {
  std::tuple<std::decay_t<A>...> values{args.get<std::decay_t<A>>()...};  // braces: from left to right
  return std::apply([make](auto&... v) { return make(std::move(v)...); }, values);
}
template <auto kMake>
MapPtr make(Arguments& args) {
  return call(kMake, args);
}

MapPtr slice(nb::list items) {
  // Each item: (start, stop, step) with None where open, or a list of places.
  std::vector<transforms::SliceOf> slices;
  for (nb::handle item : items) {
    transforms::SliceOf s;
    if (nb::isinstance<nb::tuple>(item)) {
      const auto t = nb::borrow<nb::tuple>(item);
      if (!t[0].is_none()) s.start = nb::cast<std::int64_t>(t[0]);
      if (!t[1].is_none()) s.stop = nb::cast<std::int64_t>(t[1]);
      s.step = nb::cast<std::int64_t>(t[2]);
    } else {
      s.places = nb::cast<std::vector<std::int64_t>>(item);
    }
    slices.push_back(std::move(s));
  }
  return transforms::Slice(std::move(slices));
}

using Pair = std::pair<double, double>;
using Numbers = std::vector<double>;

MapPtr affine(double degrees, Pair translate, double scale, Pair shear, vision::Inter resample, Numbers fill) {
  return vision::Affine({degrees, translate, scale, shear, resample, std::move(fill)});
}
MapPtr random_affine(Pair degrees, Numbers translate, Numbers scale, Numbers shear, vision::Inter resample,
                     Numbers fill) {
  return vision::RandomAffine(
      {degrees, std::move(translate), std::move(scale), std::move(shear), resample, std::move(fill)});
}
MapPtr rotate(double degrees, vision::Inter resample, bool expand, std::optional<Pair> center, Numbers fill) {
  return vision::Rotate(degrees, {resample, expand, center, std::move(fill)});
}
MapPtr random_rotation(Pair degrees, vision::Inter resample, bool expand, std::optional<Pair> center, Numbers fill) {
  return vision::RandomRotation(degrees, {resample, expand, center, std::move(fill)});
}
MapPtr linear_transformation(Tensor matrix, Tensor mean) { return vision::LinearTransformation(matrix, mean); }
MapPtr bounding_box_augment(std::vector<MapPtr> transform, double ratio) {
  return vision::BoundingBoxAugment(transform.front(), ratio);
}
MapPtr select_subpolicy(nb::list policy) {
  std::vector<std::vector<std::pair<MapPtr, double>>> out;
  for (nb::handle sub : policy) {
    auto& to = out.emplace_back();
    for (nb::handle step : nb::borrow<nb::list>(sub)) {
      const auto t = nb::borrow<nb::tuple>(step);
      to.emplace_back(nb::cast<MapHandle>(t[0]).op, nb::cast<double>(t[1]));
    }
  }
  return vision::RandomSelectSubpolicy(std::move(out));
}

/// A PIL image is an array to a pipeline; ToPIL and ToNumpy say where that begins and ends.
MapPtr to_pil() {
  return data::column_op("ToPIL", [](const Tensor& x) {
    const bool image = x.dtype() == DType::kUInt8 &&
                       (x.ndim() == 2 || (x.ndim() == 3 && (x.shape(2) == 1 || x.shape(2) == 3 || x.shape(2) == 4)));
    UNDERTOW_CHECK(image || (x.ndim() == 2 && x.dtype() == DType::kFloat32), DataError,
                   "ToPIL takes uint8 of shape (H, W) or (H, W, 1, 3 or 4), or float32 of shape (H, W); got {} of "
                   "shape {}",
                   numpy_name_of(x.dtype()), x.shape().str());
    return x.ndim() == 3 && x.shape(2) == 1 ? x.view({x.shape(0), x.shape(1)}) : x;
  });
}
MapPtr same() {
  return data::row_op("ToNumpy", 1, [](const data::Row& in, const data::RowContext&) { return in; });
}

#define OP(space, name) {#name, make<&space::name>}
const std::map<std::string, Maker, std::less<>> kMakers = {
    OP(transforms, TypeCast),
    OP(transforms, OneHot),
    OP(transforms, Fill),
    OP(transforms, Mask),
    OP(transforms, Concatenate),
    OP(transforms, Duplicate),
    OP(transforms, PadEnd),
    OP(transforms, Unique),
    OP(transforms, RandomApply),
    OP(transforms, RandomChoice),
    OP(transforms, RandomOrder),
    OP(vision, Decode),
    OP(vision, RandomCropDecodeResize),
    OP(vision, Resize),
    OP(vision, RandomResize),
    OP(vision, Crop),
    OP(vision, CenterCrop),
    OP(vision, ResizedCrop),
    OP(vision, RandomCrop),
    OP(vision, RandomResizedCrop),
    OP(vision, Pad),
    OP(vision, PadToSize),
    OP(vision, HorizontalFlip),
    OP(vision, VerticalFlip),
    OP(vision, RandomHorizontalFlip),
    OP(vision, RandomVerticalFlip),
    OP(vision, FiveCrop),
    OP(vision, TenCrop),
    OP(vision, SlicePatches),
    OP(vision, Perspective),
    OP(vision, RandomPerspective),
    OP(vision, AdjustBrightness),
    OP(vision, AdjustContrast),
    OP(vision, AdjustSaturation),
    OP(vision, AdjustHue),
    OP(vision, AdjustGamma),
    OP(vision, AdjustSharpness),
    OP(vision, RandomColorAdjust),
    OP(vision, RandomColor),
    OP(vision, RandomSharpness),
    OP(vision, RandomAdjustSharpness),
    OP(vision, Grayscale),
    OP(vision, RandomGrayscale),
    OP(vision, Invert),
    OP(vision, RandomInvert),
    OP(vision, Equalize),
    OP(vision, RandomEqualize),
    OP(vision, AutoContrast),
    OP(vision, RandomAutoContrast),
    OP(vision, Posterize),
    OP(vision, RandomPosterize),
    OP(vision, Solarize),
    OP(vision, RandomSolarize),
    OP(vision, RandomLighting),
    OP(vision, ConvertColor),
    OP(vision, RgbToHsv),
    OP(vision, HsvToRgb),
    OP(vision, GaussianBlur),
    OP(vision, Erase),
    OP(vision, RandomErasing),
    OP(vision, CutOut),
    OP(vision, Rescale),
    OP(vision, Normalize),
    OP(vision, NormalizePad),
    OP(vision, HWC2CHW),
    OP(vision, ToTensor),
    OP(vision, MixUpBatch),
    OP(vision, CutMixBatch),
    OP(vision, ResizeWithBBox),
    OP(vision, RandomResizeWithBBox),
    OP(vision, RandomCropWithBBox),
    OP(vision, RandomResizedCropWithBBox),
    OP(vision, RandomHorizontalFlipWithBBox),
    OP(vision, RandomVerticalFlipWithBBox),
    {"BoundingBoxAugment", make<&bounding_box_augment>},
    OP(vision, AutoAugment),
    OP(vision, RandAugment),
    OP(vision, TrivialAugmentWide),
    OP(vision, UniformAugment),
    {"Slice", make<&slice>},
    {"Affine", make<&affine>},
    {"RandomAffine", make<&random_affine>},
    {"Rotate", make<&rotate>},
    {"RandomRotation", make<&random_rotation>},
    {"LinearTransformation", make<&linear_transformation>},
    {"RandomSelectSubpolicy", make<&select_subpolicy>},
    {"ToPIL", make<&to_pil>},
    {"ToNumpy", make<&same>},
};
#undef OP

void bind_call(nb::module_& m) {
  nb::class_<MapHandle>(m, "MapOp").def("__call__", [](const MapHandle& self, const nb::args& args) -> nb::object {
    data::Row row;
    for (nb::handle a : args) row.push_back(row_tensor(a));
    const RowContext context = call_context();
    data::Row out;
    {
      const nb::gil_scoped_release release;
      out = (*self.op)(row, context);
    }
    if (out.size() == 1) return column_array(out[0]);
    nb::list l;
    for (const Tensor& t : out) l.append(column_array(t));
    return nb::tuple(l);
  });
  m.def("make", [](const std::string& name, const nb::args& args) {
    const auto at = kMakers.find(name);
    UNDERTOW_CHECK(at != kMakers.end(), KeyError, "no operation '{}'", name);
    Arguments arguments{nb::borrow<nb::tuple>(args)};
    return MapHandle{at->second(arguments)};
  });
  m.def("python_map", [](nb::callable f, int arity, std::string name) {
    return MapHandle{python_map(std::move(f), arity, std::move(name))};
  });
  m.def("compose", [](const std::vector<MapHandle>& handles) {
    UNDERTOW_CHECK(!handles.empty(), ValueError, "map: the list of operations is empty");
    return MapHandle{data::chain(handles.front().op->name(), Arguments::operations(handles))};
  });
  m.def("in_processes", [](const MapHandle& h) { return MapHandle{data::in_processes(h.op)}; });
  m.def("draw", [] { return call_context().random().uniform64(); }, "Uniform in [0, 1), as a random operation draws.");
  m.def("draw_beta", [](double alpha) {
    PhiloxStream random = call_context().random();
    return data::beta(random, alpha);
  });
}

vision::Bytes file_bytes(const Tensor& t) {
  UNDERTOW_CHECK(t.dtype() == DType::kUInt8 && t.ndim() == 1, DataError,
                 "the bytes of an image file are a 1-D array of uint8, got {} of shape {}", numpy_name_of(t.dtype()),
                 t.shape().str());
  return vision::bytes_of(t);
}

void bind_codec(nb::module_& m) {
  m.def("decode", [](nb::object file, int mode) {
    const Tensor t = row_tensor(file);
    return to_numpy(vision::decode("read_image", file_bytes(t), static_cast<vision::ImageReadMode>(mode)));
  });
  m.def("image_size", [](nb::object file) {
    const Tensor t = row_tensor(file);
    return vision::image_size("get_image_size", file_bytes(t));
  });
  m.def("encode_jpeg",
        [](nb::object image, int quality) { return to_numpy(vision::encode_jpeg(row_tensor(image), quality)); });
  m.def("encode_png",
        [](nb::object image, int compression) { return to_numpy(vision::encode_png(row_tensor(image), compression)); });
}

}  // namespace

DrawScope::DrawScope(const RowContext& context) : before_(current_row), calls_(calls_in_row) {
  current_row = &context;
  calls_in_row = 0;
}

DrawScope::~DrawScope() {
  current_row = before_;
  calls_in_row = calls_;
}

void restart_draws() { calls_so_far = 0; }

void bind_map_ops(nb::module_& m) {
  bind_call(m);
  auto v = m.def_submodule("vision");
  bind_codec(v);
}

}  // namespace undertow::python
