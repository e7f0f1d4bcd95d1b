// SPDX-License-Identifier: Apache-2.0
// data/vision/enums.h: MindSpore's enumerations of image operations, with its numbers.
#pragma once

namespace undertow::data::vision {

/// Interpolation. kAntialias (Lanczos, 3 lobes) is for Rules::kPillow, kArea for Rules::kArray; kPilCubic is Pillow's
/// bicubic under both.
enum class Inter { kNearest = 0, kAntialias = 1, kLinear = 2, kCubic = 3, kArea = 4, kPilCubic = 5 };
/// What lies beyond an image: a constant, its last pixel, its mirror image without or with the last pixel repeated.
enum class Border { kConstant, kEdge, kReflect, kSymmetric };
enum class ImageBatchFormat { kNHWC = 0, kNCHW = 1 };
enum class SliceMode { kPad = 0, kDrop = 1 };
enum class ImageReadMode { kUnchanged = 0, kGrayscale = 1, kColor = 2 };
enum class AutoAugmentPolicy { kImageNet, kCifar10, kSvhn };
enum class ConvertMode {
  kBgr2Bgra = 0,  // and RGB2RGBA
  kBgra2Bgr = 1,
  kBgr2Rgba = 2,
  kRgba2Bgr = 3,
  kBgr2Rgb = 4,
  kBgra2Rgba = 5,
  kBgr2Gray = 6,
  kRgb2Gray = 7,
  kGray2Bgr = 8,
  kGray2Bgra = 9,
  kBgra2Gray = 10,
  kRgba2Gray = 11
};
/// How pixels between pixels are computed: as OpenCV does (half-pixel centres, no smoothing when shrinking), which is
/// what MindSpore does for arrays, or as Pillow does (smoothed when shrinking), which is what it does for PIL images.
enum class Rules { kArray, kPillow };

}  // namespace undertow::data::vision
