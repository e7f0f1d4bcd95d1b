// SPDX-License-Identifier: Apache-2.0
// Augmentation policies: operations with strengths, chosen at random.
#include <algorithm>
#include <span>

#include "undertow/data/vision/arguments.h"
#include "undertow/data/vision/color.h"
#include "undertow/data/vision/warp.h"

namespace undertow::data::vision {
namespace {

enum class Act {
  kIdentity,
  kShearX,
  kShearY,
  kTranslateX,
  kTranslateY,
  kRotate,
  kBrightness,
  kColor,
  kContrast,
  kSharpness,
  kPosterize,
  kSolarize,
  kAutoContrast,
  kEqualize,
  kInvert
};

/// `strength`: radians of shear as a fraction (its tangent's angle), pixels, degrees, a factor less 1, bits or a
/// threshold, as the act has it.
Tensor act(const char* op, const Tensor& x, Act what, double strength, Inter inter, const Fill& fill) {
  const Extent e = byte_image(op, x, 3);
  const auto moved = [&](double dx, double dy, double shear_x, double shear_y) {
    constexpr double kDegrees = 57.29577951308232;
    return warp(op, x, e, affine_matrix(e, 0, dx, dy, 1, shear_x * kDegrees, shear_y * kDegrees), inter, fill);
  };
  switch (what) {
    case Act::kIdentity: return x;
    case Act::kShearX: return moved(0, 0, std::atan(strength), 0);
    case Act::kShearY: return moved(0, 0, 0, std::atan(strength));
    case Act::kTranslateX: return moved(std::trunc(strength), 0, 0, 0);
    case Act::kTranslateY: return moved(0, std::trunc(strength), 0, 0);
    case Act::kRotate: return rotate(op, x, strength, inter, false, std::nullopt, fill);
    case Act::kBrightness: return brightness(op, x, std::max(1 + strength, 0.));
    case Act::kColor: return saturation(op, x, std::max(1 + strength, 0.));
    case Act::kContrast: return contrast(op, x, std::max(1 + strength, 0.));
    case Act::kSharpness: return sharpness(op, x, std::max(1 + strength, 0.));
    case Act::kPosterize: return posterize(op, x, std::clamp<std::int64_t>(std::llround(strength), 0, 8));
    case Act::kSolarize: return solarize(op, x, strength, 255);
    case Act::kAutoContrast: return auto_contrast(op, x, 0, {});
    case Act::kEqualize: return equalize(op, x);
    case Act::kInvert: return invert(op, x);
  }
  return x;
}

/// The strongest form of each act; `sign`: half of the draws go the other way. Strengths grow evenly from `from`.
struct Scale {
  Act act;
  double from, to;
  bool sign;
  bool of_width = false, of_height = false;  ///< a share of the image's width or height
};

double strength_of(const Scale& s, const Extent& e, double part) {
  const double span = s.of_width ? static_cast<double>(e.w) : s.of_height ? static_cast<double>(e.h) : 1;
  return (s.from + (s.to - s.from) * part) * span;
}

constexpr double kShift = 150. / 331;
constexpr Scale kRand[] = {{Act::kIdentity, 0, 0, false},
                           {Act::kShearX, 0, 0.3, true},
                           {Act::kShearY, 0, 0.3, true},
                           {Act::kTranslateX, 0, kShift, true, true},
                           {Act::kTranslateY, 0, kShift, true, false, true},
                           {Act::kRotate, 0, 30, true},
                           {Act::kBrightness, 0, 0.9, true},
                           {Act::kColor, 0, 0.9, true},
                           {Act::kContrast, 0, 0.9, true},
                           {Act::kSharpness, 0, 0.9, true},
                           {Act::kPosterize, 8, 4, false},
                           {Act::kSolarize, 255, 0, false},
                           {Act::kAutoContrast, 0, 0, false},
                           {Act::kEqualize, 0, 0, false}};
constexpr Scale kWide[] = {
    {Act::kIdentity, 0, 0, false},     {Act::kShearX, 0, 0.99, true},   {Act::kShearY, 0, 0.99, true},
    {Act::kTranslateX, 0, 32, true},   {Act::kTranslateY, 0, 32, true}, {Act::kRotate, 0, 135, true},
    {Act::kBrightness, 0, 0.99, true}, {Act::kColor, 0, 0.99, true},    {Act::kContrast, 0, 0.99, true},
    {Act::kSharpness, 0, 0.99, true},  {Act::kPosterize, 8, 2, false},  {Act::kSolarize, 255, 0, false},
    {Act::kAutoContrast, 0, 0, false}, {Act::kEqualize, 0, 0, false}};

Tensor scaled_act(const char* op, const Tensor& x, std::span<const Scale> acts, std::int64_t level, std::int64_t levels,
                  Inter inter, const Fill& fill, PhiloxStream& random) {
  const Scale& s = acts[random.below(acts.size())];
  const double part = levels > 1 ? static_cast<double>(level) / static_cast<double>(levels - 1) : 0;
  double strength = strength_of(s, byte_image(op, x, 3), part);
  if (s.sign && random.uniform64() < 0.5) strength = -strength;
  return act(op, x, s.act, strength, inter, fill);
}

/// One step of an AutoAugment sub-policy: the act, its chance in tenths and its level of 0 to 9 (-1: it has none).
struct Step {
  Act act;
  int tenths, level;
};
using enum Act;
// The learned policies of AutoAugment, from the tables in the appendix of arXiv:1805.09501.
constexpr Step kImageNet[][2] = {{{kPosterize, 4, 8}, {kRotate, 6, 9}},    {{kSolarize, 6, 5}, {kAutoContrast, 6, -1}},
                                 {{kEqualize, 8, -1}, {kEqualize, 6, -1}}, {{kPosterize, 6, 7}, {kPosterize, 6, 6}},
                                 {{kEqualize, 4, -1}, {kSolarize, 2, 4}},  {{kEqualize, 4, -1}, {kRotate, 8, 8}},
                                 {{kSolarize, 6, 3}, {kEqualize, 6, -1}},  {{kPosterize, 8, 5}, {kEqualize, 10, -1}},
                                 {{kRotate, 2, 3}, {kSolarize, 6, 8}},     {{kEqualize, 6, -1}, {kPosterize, 4, 6}},
                                 {{kRotate, 8, 8}, {kColor, 4, 0}},        {{kRotate, 4, 9}, {kEqualize, 6, -1}},
                                 {{kEqualize, 0, -1}, {kEqualize, 8, -1}}, {{kInvert, 6, -1}, {kEqualize, 10, -1}},
                                 {{kColor, 6, 4}, {kContrast, 10, 8}},     {{kRotate, 8, 8}, {kColor, 10, 2}},
                                 {{kColor, 8, 8}, {kSolarize, 8, 7}},      {{kSharpness, 4, 7}, {kInvert, 6, -1}},
                                 {{kShearX, 6, 5}, {kEqualize, 10, -1}},   {{kColor, 4, 0}, {kEqualize, 6, -1}},
                                 {{kEqualize, 4, -1}, {kSolarize, 2, 4}},  {{kSolarize, 6, 5}, {kAutoContrast, 6, -1}},
                                 {{kInvert, 6, -1}, {kEqualize, 10, -1}},  {{kColor, 6, 4}, {kContrast, 10, 8}},
                                 {{kEqualize, 8, -1}, {kEqualize, 6, -1}}};
constexpr Step kCifar[][2] = {
    {{kInvert, 1, -1}, {kContrast, 2, 6}},        {{kRotate, 7, 2}, {kTranslateX, 3, 9}},
    {{kSharpness, 8, 1}, {kSharpness, 9, 3}},     {{kShearY, 5, 8}, {kTranslateY, 7, 9}},
    {{kAutoContrast, 5, -1}, {kEqualize, 9, -1}}, {{kShearY, 2, 7}, {kPosterize, 3, 7}},
    {{kColor, 4, 3}, {kBrightness, 6, 7}},        {{kSharpness, 3, 9}, {kBrightness, 7, 9}},
    {{kEqualize, 6, -1}, {kEqualize, 5, -1}},     {{kContrast, 6, 7}, {kSharpness, 6, 5}},
    {{kColor, 7, 7}, {kTranslateX, 5, 8}},        {{kEqualize, 3, -1}, {kAutoContrast, 4, -1}},
    {{kTranslateY, 4, 3}, {kSharpness, 2, 6}},    {{kBrightness, 9, 6}, {kColor, 2, 8}},
    {{kSolarize, 5, 2}, {kInvert, 0, -1}},        {{kEqualize, 2, -1}, {kAutoContrast, 6, -1}},
    {{kEqualize, 2, -1}, {kEqualize, 6, -1}},     {{kColor, 9, 9}, {kEqualize, 6, -1}},
    {{kAutoContrast, 8, -1}, {kSolarize, 2, 8}},  {{kBrightness, 1, 3}, {kColor, 7, 0}},
    {{kSolarize, 4, 5}, {kAutoContrast, 9, -1}},  {{kTranslateY, 9, 9}, {kTranslateY, 7, 9}},
    {{kAutoContrast, 9, -1}, {kSolarize, 8, 3}},  {{kEqualize, 8, -1}, {kInvert, 1, -1}},
    {{kTranslateY, 7, 9}, {kAutoContrast, 9, -1}}};
constexpr Step kSvhn[][2] = {{{kShearX, 9, 4}, {kInvert, 2, -1}},        {{kShearY, 9, 8}, {kInvert, 7, -1}},
                             {{kEqualize, 6, -1}, {kSolarize, 6, 6}},    {{kInvert, 9, -1}, {kEqualize, 6, -1}},
                             {{kEqualize, 6, -1}, {kRotate, 9, 3}},      {{kShearX, 9, 4}, {kAutoContrast, 8, -1}},
                             {{kShearY, 9, 8}, {kInvert, 4, -1}},        {{kShearY, 9, 5}, {kSolarize, 2, 6}},
                             {{kInvert, 9, -1}, {kAutoContrast, 8, -1}}, {{kEqualize, 6, -1}, {kRotate, 9, 3}},
                             {{kShearX, 9, 4}, {kSolarize, 3, 3}},       {{kShearY, 8, 8}, {kInvert, 7, -1}},
                             {{kEqualize, 9, -1}, {kTranslateY, 6, 6}},  {{kInvert, 9, -1}, {kEqualize, 6, -1}},
                             {{kContrast, 3, 3}, {kRotate, 8, 4}},       {{kInvert, 8, -1}, {kTranslateY, 0, 2}},
                             {{kShearY, 7, 6}, {kSolarize, 4, 8}},       {{kInvert, 6, -1}, {kRotate, 8, 4}},
                             {{kShearY, 3, 7}, {kTranslateX, 9, 3}},     {{kShearX, 1, 6}, {kInvert, 6, -1}},
                             {{kSolarize, 7, 2}, {kTranslateY, 6, 7}},   {{kShearY, 8, 4}, {kInvert, 8, -1}},
                             {{kShearX, 7, 9}, {kTranslateY, 8, 3}},     {{kShearY, 8, 5}, {kAutoContrast, 7, -1}},
                             {{kShearX, 7, 2}, {kInvert, 1, -1}}};

std::span<const Step[2]> policy_steps(AutoAugmentPolicy policy) {
  if (policy == AutoAugmentPolicy::kImageNet) return kImageNet;
  return policy == AutoAugmentPolicy::kCifar10 ? std::span<const Step[2]>(kCifar) : std::span<const Step[2]>(kSvhn);
}

void check_policy(const char* op, Inter inter, const Fill& fill) {
  check_fill(op, fill);
  UNDERTOW_CHECK(inter == Inter::kNearest || inter == Inter::kLinear || inter == Inter::kCubic || inter == Inter::kArea,
                 ValueError, "{}: interpolation must be Inter.NEAREST, LINEAR, CUBIC or AREA, got number {}", op,
                 static_cast<int>(inter));
}

}  // namespace

Op AutoAugment(AutoAugmentPolicy policy, Inter interpolation, Fill fill_value) {
  check_policy("AutoAugment", interpolation, fill_value);
  return random_op("AutoAugment", [=](const Tensor& x, PhiloxStream& random) {
    const auto steps = policy_steps(policy);
    const auto& pair = steps[random.below(steps.size())];
    Tensor y = x;
    const Extent e = byte_image("AutoAugment", x, 3);
    for (const Step& step : pair) {
      const bool does = random.uniform64() * 10 < step.tenths, other_way = random.uniform64() < 0.5;
      if (!does) continue;
      // The strengths are RandAugment's, in ten levels.
      const auto* s = std::ranges::find(kRand, step.act, &Scale::act);
      double strength = 0;
      if (step.level >= 0 && s != std::end(kRand)) strength = strength_of(*s, e, step.level / 9.);
      if (s != std::end(kRand) && s->sign && other_way) strength = -strength;
      y = act("AutoAugment", y, step.act, strength, interpolation, fill_value);
    }
    return y;
  });
}

Op RandAugment(std::int64_t num_ops, std::int64_t magnitude, std::int64_t bins, Inter interpolation, Fill fill_value) {
  check_policy("RandAugment", interpolation, fill_value);
  UNDERTOW_CHECK(num_ops >= 1, ValueError, "RandAugment: num_ops must be positive, got {}", num_ops);
  UNDERTOW_CHECK(bins >= 2, ValueError, "RandAugment: num_magnitude_bins must be at least 2, got {}", bins);
  UNDERTOW_CHECK(magnitude >= 0 && magnitude < bins, ValueError,
                 "RandAugment: magnitude must be in [0, num_magnitude_bins) = [0, {}), got {}", bins, magnitude);
  return random_op("RandAugment", [=](const Tensor& x, PhiloxStream& random) {
    Tensor y = x;
    for (std::int64_t i = 0; i < num_ops; ++i)
      y = scaled_act("RandAugment", y, kRand, magnitude, bins, interpolation, fill_value, random);
    return y;
  });
}

Op TrivialAugmentWide(std::int64_t bins, Inter interpolation, Fill fill_value) {
  check_policy("TrivialAugmentWide", interpolation, fill_value);
  UNDERTOW_CHECK(bins >= 2, ValueError, "TrivialAugmentWide: num_magnitude_bins must be at least 2, got {}", bins);
  return random_op("TrivialAugmentWide", [=](const Tensor& x, PhiloxStream& random) {
    const auto level = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(bins)));
    return scaled_act("TrivialAugmentWide", x, kWide, level, bins, interpolation, fill_value, random);
  });
}

Op UniformAugment(std::vector<Op> transforms, std::int64_t num_ops) {
  UNDERTOW_CHECK(num_ops >= 1 && num_ops <= static_cast<std::int64_t>(transforms.size()), ValueError,
                 "UniformAugment: num_ops must be in [1, {}], the number of transforms; got {}", transforms.size(),
                 num_ops);
  return row_op(
      "UniformAugment", 1,
      [=](const Row& in, const RowContext& context) {
        PhiloxStream random = context.random();
        std::vector<std::size_t> left(transforms.size());
        for (std::size_t i = 0; i < left.size(); ++i) left[i] = i;
        Row row = in;
        for (std::int64_t n = 0; n < num_ops; ++n) {
          const auto at = static_cast<std::ptrdiff_t>(random.below(left.size()));
          const std::size_t chosen = left[static_cast<std::size_t>(at)];
          left.erase(left.begin() + at);
          if (random.uniform64() < 0.5) row = (*transforms[chosen])(row, inner(context, chosen + 1));
        }
        return row;
      },
      transforms);
}

Op RandomSelectSubpolicy(std::vector<std::vector<std::pair<Op, double>>> policy) {
  UNDERTOW_CHECK(!policy.empty(), ValueError, "RandomSelectSubpolicy: policy is empty");
  std::vector<Op> inside;
  for (const auto& sub : policy) {
    UNDERTOW_CHECK(!sub.empty(), ValueError, "RandomSelectSubpolicy: a sub-policy is empty");
    for (const auto& [op, prob] : sub) {
      check_prob("RandomSelectSubpolicy", prob);
      inside.push_back(op);
    }
  }
  return row_op(
      "RandomSelectSubpolicy", 1,
      [policy](const Row& in, const RowContext& context) {
        PhiloxStream random = context.random();
        const auto& sub = policy[random.below(policy.size())];
        Row row = in;
        for (std::size_t i = 0; i < sub.size(); ++i)
          if (random.uniform64() < sub[i].second) row = (*sub[i].first)(row, inner(context, i + 1));
        return row;
      },
      inside);
}

}  // namespace undertow::data::vision
