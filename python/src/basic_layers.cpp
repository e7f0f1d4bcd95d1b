// SPDX-License-Identifier: Apache-2.0
// nn: embeddings, padding, resizing, and other cells around one function.
#include "undertow/train/basic_layers.h"

#include "python/src/bind_layer.h"

namespace undertow::python {
namespace {

namespace fn = nn::fn;

template <int N>
void bind_paddings(nb::module_& m) {
  using C = fn::ConstantPad<N>;
  bind_function<C>(m, "Pads with one value: one number for all sides, or pairs from the last dimension on.",
                   required("padding", &C::padding), required("value", &C::value));
  using R = fn::ReflectionPad<N>;
  bind_function<R>(m, "Pads by reflection, without the edge.", required("padding", &R::padding));
  using E = fn::ReplicationPad<N>;
  bind_function<E>(m, "Pads with the edge.", required("padding", &E::padding));
  using D = fn::DropoutNd<N>;
  bind_function<D>(m, "In training zeroes whole channels with probability p and scales the rest.", field("p", &D::p));
}

/// nn.Range(start, limit=None, delta=1): a constant that the cell gives without inputs.
struct Range {
  static constexpr const char* kName = "Range";
  Tensor values;
  Tensor operator()() const { return values; }
};

void bind_range(nb::module_& m) {
  using T = nn::FunctionCell<Range>;
  cell_class<T, nn::Cell>(m, "Range", "The numbers from start to limit (or 0 to start) by delta: float32 or int32.")
      .def(
          "__init__",
          [](nb::pointer_and_handle<T> self, nb::handle start, nb::handle limit, nb::handle delta) {
            const nb::object numpy = nb::module_::import_("numpy");
            const nb::object all = numpy.attr("arange")(start, limit, delta);
            const bool floating = nb::cast<std::string>(all.attr("dtype").attr("kind")) == "f";
            construct_cell(self, Range{to_tensor(all, floating ? DType::kFloat32 : DType::kInt32)});
          },
          "start"_a, "limit"_a.none() = nb::none(), "delta"_a = 1);
}

void bind_embeddings(nb::module_& m) {
  using E = nn::EmbeddingOptions;
  bind_layer<nn::EmbeddingCell, E>(
      m, "Embedding", "Rows of a table by ids. Parameter: embedding_table (vocab_size, embedding_size).",
      At<std::int64_t, std::int64_t>{{"vocab_size", "embedding_size"}}, field("use_one_hot", &E::use_one_hot),
      field("embedding_table", &E::embedding_table), field("dtype", &E::dtype), field("padding_idx", &E::padding_idx))
      .def("extend_repr", [](const nn::EmbeddingCell& c) {
        return fmt::format("vocab_size={}, embedding_size={}, use_one_hot={}", c.vocab_size(), c.embedding_size(),
                           c.options().use_one_hot ? "True" : "False");
      });
  cell_class<nn::EmbeddingLookupCell, nn::Cell>(m, "EmbeddingLookup",
                                                "Rows of a table by ids. Parameter: embedding_table.")
      .def(
          "__init__",
          [](nb::pointer_and_handle<nn::EmbeddingLookupCell> self, std::int64_t vocab, std::int64_t size,
             const InitArg& init, nb::handle, nb::handle, nb::handle, std::optional<double> max_norm, bool,
             DType dtype) {
            nn::EmbeddingLookupOptions o;
            o.param_init = init.init.or_else(o.param_init), o.max_norm = max_norm, o.dtype = dtype;
            construct_cell(self, vocab, size, o);
          },
          "vocab_size"_a, "embedding_size"_a, "param_init"_a.none() = nb::none(), "target"_a = "CPU",
          "slice_mode"_a = "batch_slice", "manual_shapes"_a.none() = nb::none(), "max_norm"_a.none() = nb::none(),
          "sparse"_a = true, "dtype"_a = dtype_object(DType::kFloat32));
  using B = nn::BiDenseOptions;
  bind_layer<nn::BiDenseCell, B>(
      m, "BiDense", "x1 W x2 + b. Parameters: weight (out, in1, in2), bias (out,).",
      At<std::int64_t, std::int64_t, std::int64_t>{{"in1_channels", "in2_channels", "out_channels"}},
      field("weight_init", &B::weight_init), field("bias_init", &B::bias_init), field("has_bias", &B::has_bias),
      field("dtype", &B::dtype));
}

}  // namespace

void bind_basic_layers(nb::module_& m) {
  bind_embeddings(m);
  {
    using T = nn::FunctionCell<fn::Identity>;
    cell_class<T, nn::Cell>(m, "Identity", "Its input, whatever the arguments.")
        .def("__init__",
             [](nb::pointer_and_handle<T> self, const nb::args&, const nb::kwargs&) { construct_cell(self); });
  }
  bind_paddings<1>(m);
  bind_paddings<2>(m);
  bind_paddings<3>(m);
  bind_range(m);
  bind_function<fn::ZeroPad2d>(m, "Pads with zeros.", required("padding", &fn::ZeroPad2d::padding));
  bind_function<fn::Pad>(m, "Pads each dimension by a pair (low, high): zeros, REFLECT or SYMMETRIC.",
                         required("paddings", &fn::Pad::paddings), field("mode", &fn::Pad::mode));
  bind_function<fn::OneHot>(m, "One-hot rows of indices.", field("axis", &fn::OneHot::axis),
                            field("depth", &fn::OneHot::depth), field("on_value", &fn::OneHot::on_value),
                            field("off_value", &fn::OneHot::off_value), field("dtype", &fn::OneHot::dtype));
  bind_function<fn::Upsample>(m, "ops.interpolate as a cell.", field("size", &fn::Upsample::size),
                              field("scale_factor", &fn::Upsample::scale_factor), field("mode", &fn::Upsample::mode),
                              field("align_corners", &fn::Upsample::align_corners),
                              field("recompute_scale_factor", &fn::Upsample::recompute_scale_factor));
  bind_function<fn::ResizeBilinear>(m, "Bilinear resizing of (N, C, H, W) to `size` or by `scale_factor`.",
                                    field("half_pixel_centers", &fn::ResizeBilinear::half_pixel_centers));
  bind_function<fn::PixelShuffle>(m, "(..., C r^2, H, W) to (..., C, H r, W r).",
                                  required("upscale_factor", &fn::PixelShuffle::upscale_factor));
  bind_function<fn::PixelUnshuffle>(m, "(..., C, H r, W r) to (..., C r^2, H, W).",
                                    required("downscale_factor", &fn::PixelUnshuffle::downscale_factor));
  bind_function<fn::ChannelShuffle>(m, "Channels of `groups` groups dealt in turn.",
                                    required("groups", &fn::ChannelShuffle::groups));
  bind_function<fn::Unfold>(m, "Windows of (N, C, H, W) as (N, kh kw C, oh, ow).",
                            required("ksizes", &fn::Unfold::ksizes), required("strides", &fn::Unfold::strides),
                            required("rates", &fn::Unfold::rates), field("padding", &fn::Unfold::padding));
  bind_function<fn::Fold>(m, "Adds windows (N, C kh kw, L) up into an image.",
                          required("output_size", &fn::Fold::output_size),
                          required("kernel_size", &fn::Fold::kernel_size), field("dilation", &fn::Fold::dilation),
                          field("padding", &fn::Fold::padding), field("stride", &fn::Fold::stride));
  bind_function<fn::Unflatten>(m, "One dimension in another shape.", required("axis", &fn::Unflatten::axis),
                               required("unflattened_size", &fn::Unflatten::unflattened_size));
  bind_function<fn::Roll>(m, "Elements moved along axes, around the end.", required("shift", &fn::Roll::shift),
                          required("axis", &fn::Roll::axis));
  bind_function<fn::Tril>(m, "The lower triangle, up to diagonal k.");
  bind_function<fn::Triu>(m, "The upper triangle, from diagonal k on.");
  bind_function<fn::CosineSimilarity>(m, "Cosine of the angle along an axis.", field("dim", &fn::CosineSimilarity::dim),
                                      field("eps", &fn::CosineSimilarity::eps));
  bind_function<fn::PairwiseDistance>(m, "p-norm of the difference over the last axis.",
                                      field("p", &fn::PairwiseDistance::p), field("eps", &fn::PairwiseDistance::eps),
                                      field("keepdim", &fn::PairwiseDistance::keepdim));
  bind_function<fn::MatMul>(m, "Matrix product.", field("transpose_x1", &fn::MatMul::transpose_x1),
                            field("transpose_x2", &fn::MatMul::transpose_x2));
  bind_function<fn::ReduceLogSumExp>(m, "log(sum(exp(x))) over axes.", required("axis", &fn::ReduceLogSumExp::axis),
                                     field("keep_dims", &fn::ReduceLogSumExp::keep_dims));
  bind_function<fn::Moments>(m, "Mean and variance over axes.", field("axis", &fn::Moments::axis),
                             field("keep_dims", &fn::Moments::keep_dims));
  bind_function<fn::ClipByNorm>(m, "x scaled down to a norm of at most clip_norm.",
                                field("axis", &fn::ClipByNorm::axis));
  bind_function<fn::L1Regularizer>(m, "scale * sum(|weights|)", required("scale", &fn::L1Regularizer::scale));
}

}  // namespace undertow::python
