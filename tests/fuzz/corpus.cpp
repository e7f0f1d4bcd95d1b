// SPDX-License-Identifier: Apache-2.0
// The files that the fuzzers start from, made by our own writers.
#include <filesystem>
#include <fstream>
#include <string>

#include "undertow/data/vision/codec.h"
#include "undertow/formats/mindrecord/writer.h"

namespace fs = std::filesystem;
namespace mr = undertow::formats::mindrecord;
namespace vision = undertow::data::vision;
using undertow::DType;
using undertow::Tensor;

namespace {

Tensor picture(std::int64_t h, std::int64_t w, std::int64_t c) {
  Tensor x(DType::kUInt8, {h, w, c});
  for (std::int64_t i = 0; i < x.size(); ++i)
    static_cast<std::uint8_t*>(x.data())[i] = static_cast<std::uint8_t>(i * 7 / 5 + (i % 11) * (i % 3));
  return x;
}

void store(const fs::path& path, const Tensor& file) {
  std::ofstream out(path, std::ios::binary);
  out << std::string("\0\1\2", 3);  // what the fuzzer takes as mode and window
  out.write(static_cast<const char*>(file.data()), static_cast<std::streamsize>(file.nbytes()));
}

void images(const fs::path& folder) {
  int n = 0;
  for (const auto& [h, w] : {std::pair{40, 60}, {1, 1}, {17, 33}, {70, 20}})
    for (const int c : {1, 3}) {
      store(folder / fmt::format("{}.jpg", n), vision::encode_jpeg(picture(h, w, c), 30 + 10 * n));
      store(folder / fmt::format("{}.png", n++), vision::encode_png(picture(h, w, c)));
    }
}

void records(const fs::path& folder) {
  const std::vector<std::vector<mr::Field>> schemas = {
      {{"image", mr::FieldType::kBytes, {}}, {"label", mr::FieldType::kInt32, {}}},
      {{"text", mr::FieldType::kString, {}},
       {"a", mr::FieldType::kInt64, {{-1}}},
       {"b", mr::FieldType::kFloat32, {{2, 2}}}},
  };
  for (std::size_t s = 0; s < schemas.size(); ++s) {
    const fs::path path = folder / fmt::format("{}.mindrecord", s);
    mr::Writer writer(path.string(), 1, true);
    writer.set_header_size(16 << 10);
    writer.set_page_size(32 << 10);
    mr::Schema schema;
    schema.fields = schemas[s];
    writer.set_schema(schema);
    std::vector<mr::Record> rows;
    for (std::int64_t i = 0; i < 6; ++i) {
      mr::Record r;
      for (const mr::Field& f : writer.schema().fields) {
        if (f.name == "image") r.emplace_back(vision::encode_png(picture(3, 4, 1)));
        else if (f.name == "label") r.emplace_back(i);
        else if (f.name == "text") r.emplace_back(std::string("text ") + std::to_string(i));
        else if (f.name == "a") r.emplace_back(Tensor(std::vector<std::int64_t>{i, 2, 3}));
        else r.emplace_back(Tensor::full({2, 2}, 0.5));
      }
      rows.push_back(std::move(r));
    }
    writer.write(rows);
    writer.commit();
    fs::remove(path.string() + ".db");
  }
}

}  // namespace

int main(int, char** arguments) {
  const fs::path folder(arguments[1]);
  for (const char* name : {"image", "mindrecord"}) fs::create_directories(folder / name);
  images(folder / "image");
  records(folder / "mindrecord");
}
