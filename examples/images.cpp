// SPDX-License-Identifier: Apache-2.0
// Pictures in a MindRecord file to batches for training: decode, random crop, flip, normalise, layout in one pass.
//   example_images [MindRecord file with the fields image (bytes) and label (int32)]
// Without a file it makes one.
#include <undertow/undertow.h>

#include <chrono>
#include <cstdio>
#include <filesystem>

namespace ut = undertow;
namespace mr = undertow::formats::mindrecord;
namespace vision = undertow::data::vision;

/// 200 pictures of 100 x 120 pixels whose class is their colour.
std::string make_file() {
  const std::string path = (std::filesystem::temp_directory_path() / "undertow_example_images.mindrecord").string();
  mr::Writer writer(path, 1, true);
  mr::Schema schema;
  schema.fields = {{"image", mr::FieldType::kBytes, {}}, {"label", mr::FieldType::kInt32, {}}};
  writer.set_schema(schema);
  std::vector<mr::Record> rows;
  for (std::int64_t i = 0; i < 200; ++i) {
    ut::Tensor picture(ut::DType::kUInt8, {100, 120, 3});
    for (std::int64_t k = 0; k < picture.size(); ++k)
      picture.data_as<std::uint8_t>()[k] = static_cast<std::uint8_t>(k % 3 == i % 3 ? 200 : k / 360 + i % 50);
    rows.push_back({vision::encode_jpeg(picture), i % 3});
  }
  writer.write(rows);
  writer.commit();
  return path;
}

int main(int argc, char** argv) {
  const std::string path = argc > 1 ? argv[1] : make_file();
  const auto images =
      ut::data::MindDataset({path}, {.columns = {"image", "label"}})
          .map(vision::RandomCropDecodeResize({64, 64}), {.input_columns = {"image"}})
          .map(vision::RandomHorizontalFlip(), {.input_columns = {"image"}})
          .map(vision::Normalize({123.7, 116.3, 103.5}, {58.4, 57.1, 57.4}), {.input_columns = {"image"}})
          .map(vision::HWC2CHW(), {.input_columns = {"image"}})
          .batch(32);
  const auto start = std::chrono::steady_clock::now();
  std::int64_t rows = 0;
  for (const auto& row : images) {
    if (rows == 0) std::printf("image %s, label %s\n", row[0].shape().str().c_str(), row[1].shape().str().c_str());
    rows += row[0].shape(0);
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  std::printf("%lld images, %.0f a second\n", static_cast<long long>(rows), static_cast<double>(rows) / took.count());
  return rows > 0 ? 0 : 1;
}
