// SPDX-License-Identifier: Apache-2.0
// nn: normalisations.
#include "undertow/train/norm_layers.h"

#include "python/src/bind_layer.h"

namespace undertow::python {
namespace {

constexpr const char* kBatch =
    "Batch normalisation. Parameters: moving_mean, moving_variance, gamma, beta. momentum is what the moving "
    "statistics keep of themselves.";

template <typename T, typename... More>
auto bind_batch_norm(nb::module_& m, const char* name, More... more) {
  using O = nn::BatchNormOptions;
  auto c = bind_layer<T, O>(
      m, name, kBatch, At<std::int64_t>{{"num_features"}}, field("eps", &O::eps), field("momentum", &O::momentum),
      field("affine", &O::affine), field("gamma_init", &O::gamma_init), field("beta_init", &O::beta_init),
      field("moving_mean_init", &O::moving_mean_init), field("moving_var_init", &O::moving_var_init),
      field("use_batch_statistics", &O::use_batch_statistics), more..., field("dtype", &O::dtype));
  c.def("extend_repr", [](const T& cell) { return fmt::format("num_features={}", cell.num_features()); });
  return c;
}

template <int Spatial>
void bind_instance_norm(nb::module_& m, const char* name) {
  using O = nn::InstanceNormOptions;
  using T = nn::InstanceNormOf<Spatial>;
  bind_layer<T, O>(m, name, "Each channel of each sample by its own mean and variance. Parameters: gamma, beta.",
                   At<std::int64_t>{{"num_features"}}, field("eps", &O::eps), field("momentum", &O::momentum),
                   field("affine", &O::affine), field("gamma_init", &O::gamma_init), field("beta_init", &O::beta_init),
                   field("dtype", &O::dtype))
      .def("extend_repr", [](const T& cell) { return fmt::format("num_features={}", cell.num_features()); });
}

}  // namespace

void bind_norm_layers(nb::module_& m) {
  using B = nn::BatchNormOptions;
  bind_batch_norm<nn::BatchNorm1dCell>(m, "BatchNorm1d", field("data_format", &B::data_format));
  bind_batch_norm<nn::BatchNorm2dCell>(m, "BatchNorm2d", field("data_format", &B::data_format));
  bind_batch_norm<nn::BatchNorm3dCell>(m, "BatchNorm3d");
  {
    // process_groups is for several processes; one process has nobody to synchronise with.
    auto c = cell_class<nn::SyncBatchNormCell, nn::Cell>(m, "SyncBatchNorm", kBatch);
    c.def(
        "__init__",
        [](nb::pointer_and_handle<nn::SyncBatchNormCell> self, std::int64_t n, double eps, double momentum, bool affine,
           const InitArg& gamma, const InitArg& beta, const InitArg& mean, const InitArg& var,
           std::optional<bool> use_batch, nb::handle groups, DType dtype) {
          B o;
          o.eps = eps, o.momentum = momentum, o.affine = affine, o.use_batch_statistics = use_batch, o.dtype = dtype;
          o.gamma_init = gamma.init.or_else(o.gamma_init), o.beta_init = beta.init.or_else(o.beta_init);
          o.moving_mean_init = mean.init.or_else(o.moving_mean_init);
          o.moving_var_init = var.init.or_else(o.moving_var_init);
          construct_cell(self, n, o);
          nb::setattr(self.h, "num_features", nb::cast(n));
          nb::setattr(self.h, "process_groups", groups);
        },
        "num_features"_a, "eps"_a = 1e-5, "momentum"_a = 0.9, "affine"_a = true, "gamma_init"_a.none() = nb::none(),
        "beta_init"_a.none() = nb::none(), "moving_mean_init"_a.none() = nb::none(),
        "moving_var_init"_a.none() = nb::none(), "use_batch_statistics"_a.none() = nb::none(),
        "process_groups"_a.none() = nb::none(), "dtype"_a = dtype_object(DType::kFloat32));
    c.def("extend_repr",
          [](const nn::SyncBatchNormCell& cell) { return fmt::format("num_features={}", cell.num_features()); });
  }
  {
    using O = nn::LayerNormOptions;
    auto c = cell_class<nn::LayerNormCell, nn::Cell>(
        m, "LayerNorm",
        "Layer normalisation over the dimensions from begin_norm_axis on. Parameters: gamma, beta of shape "
        "normalized_shape.");
    c.def(
        "__init__",
        [](nb::pointer_and_handle<nn::LayerNormCell> self, nb::handle shape, std::int64_t norm, std::int64_t params,
           const InitArg& gamma, const InitArg& beta, double epsilon, DType dtype) {
          if (!PyTuple_Check(shape.ptr()) && !PyList_Check(shape.ptr()))
            throw TypeError(fmt::format("LayerNorm: normalized_shape must be a tuple or list of integers, got {}",
                                        type_name_of(shape)));
          O o;
          o.begin_norm_axis = norm, o.begin_params_axis = params, o.epsilon = epsilon, o.dtype = dtype;
          o.gamma_init = gamma.init.or_else(o.gamma_init), o.beta_init = beta.init.or_else(o.beta_init);
          construct_cell(self, nb::cast<std::vector<std::int64_t>>(shape), o);
          nb::setattr(self.h, "normalized_shape", shape);
          nb::setattr(self.h, "begin_norm_axis", nb::cast(norm));
          nb::setattr(self.h, "begin_params_axis", nb::cast(params));
          nb::setattr(self.h, "epsilon", nb::cast(epsilon));
          // Derived classes call it in a construct of their own.
          nb::setattr(self.h, "layer_norm",
                      nb::module_::import_("undertow.ops").attr("LayerNorm")(norm, params, epsilon));
        },
        "normalized_shape"_a, "begin_norm_axis"_a = -1, "begin_params_axis"_a = -1, "gamma_init"_a.none() = nb::none(),
        "beta_init"_a.none() = nb::none(), "epsilon"_a = 1e-7, "dtype"_a = dtype_object(DType::kFloat32));
    c.def("extend_repr", [](const nn::LayerNormCell& cell) {
      return fmt::format("normalized_shape={}, begin_norm_axis={}, begin_params_axis={}",
                         cell.get_param("gamma").shape().str(), cell.options().begin_norm_axis,
                         cell.options().begin_params_axis);
    });
  }
  {
    using O = nn::GroupNormOptions;
    bind_layer<nn::GroupNormCell, O>(
        m, "GroupNorm", "Normalisation over groups of channels of (N, C, ...). Parameters: gamma, beta (C,).",
        At<std::int64_t, std::int64_t>{{"num_groups", "num_channels"}}, field("eps", &O::eps),
        field("affine", &O::affine), field("gamma_init", &O::gamma_init), field("beta_init", &O::beta_init),
        field("dtype", &O::dtype))
        .def("extend_repr", [](const nn::GroupNormCell& cell) {
          return fmt::format("num_groups={}, num_channels={}", cell.num_groups(), cell.num_channels());
        });
  }
  bind_instance_norm<1>(m, "InstanceNorm1d");
  bind_instance_norm<2>(m, "InstanceNorm2d");
  bind_instance_norm<3>(m, "InstanceNorm3d");
  using L = nn::fn::LRN;
  bind_function<L>(m, "Local response normalisation across channels.", field("depth_radius", &L::depth_radius),
                   field("bias", &L::bias), field("alpha", &L::alpha), field("beta", &L::beta),
                   field("norm_region", &L::norm_region));
  bind_function<nn::fn::Norm>(m, "The Euclidean norm over the axes.", field("axis", &nn::fn::Norm::axis),
                              field("keep_dims", &nn::fn::Norm::keep_dims));
}

}  // namespace undertow::python
