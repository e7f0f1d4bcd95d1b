// SPDX-License-Identifier: Apache-2.0
// data/vision/vision.h: image operations for map(). Names, defaults and results as MindSpore's
// mindspore.dataset.vision.
//
//   auto train = images.map(data::vision::RandomCropDecodeResize({224, 224}), {.input_columns = {"image"}})
//                      .map(data::vision::RandomHorizontalFlip(), {.input_columns = {"image"}});
//
// An image is (H, W, C) or (H, W). Operations keep the dtype unless they say otherwise; uint8 results are rounded and
// clamped, never wrapped. Sizes are {height, width}; one number stands for the shorter side (Resize) or a square
// (crops). An operation applied to several columns treats each alike, with the same random draws. Constructors throw
// ValueError for arguments out of range; images that do not fit raise DataError, which names the operation.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "undertow/data/source.h"
#include "undertow/data/vision/enums.h"

namespace undertow::data::vision {

using Op = std::shared_ptr<MapOp>;
using Size = std::vector<std::int64_t>;
using Fill = std::vector<double>;  ///< one value, or one a channel
using Range = std::pair<double, double>;

// ---- decoding

/// The bytes of a JPEG or PNG file (uint8, 1-D) to (H, W, 3) RGB. Grey becomes three equal channels, CMYK is converted,
/// alpha is dropped, 16 bits give their high byte; an EXIF orientation is left alone (pixels come as stored).
Op Decode();
/// Decode and RandomResizedCrop in one: the same draws and the same pixels, but only the window is decoded.
Op RandomCropDecodeResize(Size size, Range scale = {0.08, 1.0}, Range ratio = {3. / 4, 4. / 3},
                          Inter interpolation = Inter::kLinear, std::int64_t max_attempts = 10,
                          Rules rules = Rules::kArray);

// ---- size and place

Op Resize(Size size, Inter interpolation = Inter::kLinear, Rules rules = Rules::kArray);
/// With a random interpolation of kLinear, kNearest, kCubic and kArea.
Op RandomResize(Size size, Rules rules = Rules::kArray);
Op Crop(std::pair<std::int64_t, std::int64_t> coordinates, Size size);  ///< coordinates: {top, left}
Op CenterCrop(Size size);                                               ///< a smaller image is padded with 0
Op ResizedCrop(std::int64_t top, std::int64_t left, std::int64_t height, std::int64_t width, Size size,
               Inter interpolation = Inter::kLinear, Rules rules = Rules::kArray);
/// padding: {}, {all}, {left and right, top and bottom} or {left, top, right, bottom}.
Op RandomCrop(Size size, Size padding = {}, bool pad_if_needed = false, Fill fill_value = {0},
              Border padding_mode = Border::kConstant);
/// A window of `scale` of the area and width / height in `ratio` (uniform in its logarithm), resized.
Op RandomResizedCrop(Size size, Range scale = {0.08, 1.0}, Range ratio = {3. / 4, 4. / 3},
                     Inter interpolation = Inter::kLinear, std::int64_t max_attempts = 10, Rules rules = Rules::kArray);
Op Pad(Size padding, Fill fill_value = {0}, Border padding_mode = Border::kConstant);
/// offset: {} centres, {n} or {top, left}. One size makes a square.
Op PadToSize(Size size, Size offset = {}, Fill fill_value = {0}, Border padding_mode = Border::kConstant);
Op HorizontalFlip();
Op VerticalFlip();
Op RandomHorizontalFlip(double prob = 0.5);
Op RandomVerticalFlip(double prob = 0.5);
/// (H, W, C) to the four corners and the centre: five columns.
Op FiveCrop(Size size);
/// FiveCrop of the image and of its mirror image: ten columns.
Op TenCrop(Size size, bool use_vertical_flip = false);
/// num_height x num_width parts: as many columns.
Op SlicePatches(std::int64_t num_height = 1, std::int64_t num_width = 1, SliceMode slice_mode = SliceMode::kPad,
                double fill_value = 0);

// ---- warps

struct AffineOptions {
  double degrees = 0;
  std::pair<double, double> translate = {0, 0};  ///< fractions of width and height, in [-1, 1]
  double scale = 1;
  std::pair<double, double> shear = {0, 0};  ///< degrees along x and y
  Inter resample = Inter::kNearest;
  Fill fill_value = {0};
};
Op Affine(AffineOptions options);
struct RandomAffineOptions {
  Range degrees = {0, 0};
  std::vector<double> translate;  ///< {}, {min x, max x} or {min x, max x, min y, max y}, fractions in [-1, 1]
  std::vector<double> scale;      ///< {} or {min, max}
  std::vector<double> shear;      ///< {}, {min x, max x} or {min x, max x, min y, max y}, degrees
  Inter resample = Inter::kNearest;
  Fill fill_value = {0};
};
Op RandomAffine(RandomAffineOptions options);
struct RotateOptions {
  Inter resample = Inter::kNearest;
  bool expand = false;                              ///< makes room for the whole result
  std::optional<std::pair<double, double>> center;  ///< {x, y}; default: the middle
  Fill fill_value = {0};
};
Op Rotate(double degrees, RotateOptions options = {});  ///< counter-clockwise
Op RandomRotation(Range degrees, RotateOptions options = {});
using Points =
    std::vector<std::pair<double, double>>;  ///< four of {x, y}: top left, top right, bottom right, bottom left
Op Perspective(Points start_points, Points end_points, Inter interpolation = Inter::kLinear);
Op RandomPerspective(double distortion_scale = 0.5, double prob = 0.5, Inter interpolation = Inter::kCubic);

// ---- colour (uint8; 3 channels are RGB)

Op AdjustBrightness(double brightness_factor);  ///< 0: black, 1: as it is
Op AdjustContrast(double contrast_factor);      ///< 0: its mean grey, 1: as it is
Op AdjustSaturation(double saturation_factor);  ///< 0: grey, 1: as it is
Op AdjustHue(double hue_factor);                ///< in [-0.5, 0.5]; a turn is 1
Op AdjustGamma(double gamma, double gain = 1);  ///< 255 * gain * (x / 255) ^ gamma
Op AdjustSharpness(double sharpness_factor);    ///< 0: smoothed, 1: as it is
/// Brightness, contrast, saturation and hue by factors drawn from the ranges, in a random order.
Op RandomColorAdjust(Range brightness = {1, 1}, Range contrast = {1, 1}, Range saturation = {1, 1}, Range hue = {0, 0});
Op RandomColor(Range degrees = {0.1, 1.9});
Op RandomSharpness(Range degrees = {0.1, 1.9});
Op RandomAdjustSharpness(double degree, double prob = 0.5);
Op Grayscale(std::int64_t num_output_channels = 1);
Op RandomGrayscale(double prob = 0.1);
Op Invert();
Op RandomInvert(double prob = 0.5);
Op Equalize();
Op RandomEqualize(double prob = 0.5);
/// Stretches each channel to 0..255 after dropping `cutoff` percent of the pixels at both ends and the values of
/// `ignore`.
Op AutoContrast(double cutoff = 0, std::vector<std::int64_t> ignore = {});
Op RandomAutoContrast(double cutoff = 0, std::vector<std::int64_t> ignore = {}, double prob = 0.5);
Op Posterize(std::int64_t bits);  ///< keeps the leading bits, 0 to 8
Op RandomPosterize(std::pair<std::int64_t, std::int64_t> bits = {8, 8});
/// Inverts the values within [threshold.first, threshold.second].
Op Solarize(Range threshold);
Op RandomSolarize(Range threshold = {0, 255});
/// AlexNet's noise along the principal components of ImageNet's colours, with standard deviation alpha.
Op RandomLighting(double alpha = 0.05);
Op ConvertColor(ConvertMode mode);
Op RgbToHsv(bool is_hwc = false);  ///< float64; hue and saturation in [0, 1], value as the input
Op HsvToRgb(bool is_hwc = false);
/// kernel_size {k} or {along x, along y}, odd; sigma {} is 0.3 * ((k - 1) * 0.5 - 1) + 0.8.
Op GaussianBlur(Size kernel_size, std::vector<double> sigma = {});

// ---- erasing

Op Erase(std::int64_t top, std::int64_t left, std::int64_t height, std::int64_t width, Fill value = {0});
/// value {}: standard normal noise. The image is (C, H, W), as after ToTensor.
Op RandomErasing(double prob = 0.5, Range scale = {0.02, 0.33}, Range ratio = {0.3, 3.3}, Fill value = {0},
                 std::int64_t max_attempts = 10);
Op CutOut(std::int64_t length, std::int64_t num_patches = 1, bool is_hwc = true);

// ---- numbers and layout

Op Rescale(double rescale, double shift);  ///< float32: x * rescale + shift
/// float32: (x - mean) / std per channel, or with one value for all. A 2-D image has one channel.
Op Normalize(std::vector<double> mean, std::vector<double> std, bool is_hwc = true);
/// Normalize with a last channel of zeros; float32 or float16.
Op NormalizePad(std::vector<double> mean, std::vector<double> std, DType dtype = DType::kFloat32, bool is_hwc = true);
Op HWC2CHW();                                      ///< a 2-D image stays
Op ToTensor(DType output_type = DType::kFloat32);  ///< (H, W, C) or (H, W) to (C, H, W), divided by 255
Op LinearTransformation(const Tensor& transformation_matrix, const Tensor& mean_vector);

// ---- whole batches: columns image and label (one-hot)

Op MixUpBatch(double alpha = 1.0);
Op CutMixBatch(ImageBatchFormat image_batch_format, double alpha = 1.0, double prob = 1.0);

// ---- images with boxes: columns image and boxes, (N, 4 or more) float32: x, y, width, height, and what else there is.
// The boxes go where the image goes, cut to it; those outside are left out.

Op ResizeWithBBox(Size size, Inter interpolation = Inter::kLinear);
Op RandomResizeWithBBox(Size size);
Op RandomCropWithBBox(Size size, Size padding = {}, bool pad_if_needed = false, Fill fill_value = {0},
                      Border padding_mode = Border::kConstant);
Op RandomResizedCropWithBBox(Size size, Range scale = {0.08, 1.0}, Range ratio = {3. / 4, 4. / 3},
                             Inter interpolation = Inter::kLinear, std::int64_t max_attempts = 10);
Op RandomHorizontalFlipWithBBox(double prob = 0.5);
Op RandomVerticalFlipWithBBox(double prob = 0.5);
/// The transform of the parts of an image in `ratio` of its boxes (at least one), drawn by chance.
Op BoundingBoxAugment(Op transform, double ratio = 0.3);

// ---- policies (uint8, RGB)

/// One of the sub-policies, each a list of {operation, probability}.
Op RandomSelectSubpolicy(std::vector<std::vector<std::pair<Op, double>>> policy);
/// num_ops of the operations, each with a chance of one half.
Op UniformAugment(std::vector<Op> transforms, std::int64_t num_ops = 2);
/// Sources: AutoAugment, arXiv:1805.09501; RandAugment, arXiv:1909.13719; TrivialAugment, arXiv:2103.10158.
Op AutoAugment(AutoAugmentPolicy policy = AutoAugmentPolicy::kImageNet, Inter interpolation = Inter::kNearest,
               Fill fill_value = {0});
Op RandAugment(std::int64_t num_ops = 2, std::int64_t magnitude = 9, std::int64_t num_magnitude_bins = 31,
               Inter interpolation = Inter::kNearest, Fill fill_value = {0});
Op TrivialAugmentWide(std::int64_t num_magnitude_bins = 31, Inter interpolation = Inter::kNearest,
                      Fill fill_value = {0});

// ---- at once, without a pipeline

/// The file for an image of uint8, (H, W), (H, W, 1) or (H, W, 3), as 1-D uint8. quality: 1 to 100; compression: 0
/// to 9.
Tensor encode_jpeg(const Tensor& image, int quality = 75);
Tensor encode_png(const Tensor& image, int compression = 6);

}  // namespace undertow::data::vision
