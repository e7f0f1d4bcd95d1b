// SPDX-License-Identifier: Apache-2.0
// MindRecord files, and the datasets that read files.
#include <nanobind/stl/map.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/unique_ptr.h>

#include "python/src/data_sources.h"
#include "undertow/base/check.h"
#include "undertow/data/files.h"
#include "undertow/formats/mindrecord/header.h"
#include "undertow/formats/mindrecord/reader.h"
#include "undertow/formats/mindrecord/writer.h"

namespace undertow::python {
namespace {

namespace mr = formats::mindrecord;
using NoGil = nb::call_guard<nb::gil_scoped_release>;

mr::Schema schema_from(const nb::list& fields, std::string description, std::vector<std::string> index) {
  mr::Schema schema;
  schema.description = std::move(description);
  for (nb::handle item : fields) {
    const nb::tuple f = nb::cast<nb::tuple>(item);
    mr::Field field{nb::cast<std::string>(f[0]), mr::field_type_of(nb::cast<std::string>(f[1])), std::nullopt};
    if (!f[2].is_none()) field.shape = nb::cast<std::vector<std::int64_t>>(f[2]);
    schema.fields.push_back(std::move(field));
  }
  schema.index = std::move(index);
  return schema;
}

nb::dict schema_to(const mr::Schema& schema) {
  nb::dict fields;
  for (const mr::Field& f : schema.fields) {
    nb::dict field;
    const auto type = mr::name_of(f.type);
    field["type"] = nb::str(type.data(), type.size());
    if (f.shape) field["shape"] = nb::cast(*f.shape);
    fields[f.name.c_str()] = field;
  }
  return fields;
}

/// A scalar of NumPy of the given kind ('i': whole numbers, 'f').
bool is_scalar(nb::handle o, const char* kinds) {
  if (!nb::hasattr(o, "dtype") || !nb::hasattr(o, "ndim") || nb::cast<int>(o.attr("ndim")) != 0) return false;
  const auto kind = nb::cast<std::string>(nb::str(o.attr("dtype").attr("kind")));
  return std::string_view(kinds).find(kind) != std::string_view::npos;
}

mr::Value value_of(nb::handle o, const mr::Field& f, std::size_t row) {
  PyObject* p = o.ptr();
  if (f.shape) {
    if (nb::hasattr(o, "dtype") && nb::hasattr(o, "shape") && PyObject_CheckBuffer(p) &&
        nb::cast<int>(o.attr("ndim")) > 0)
      return to_tensor(o);
  } else if (f.type == mr::FieldType::kBytes) {
    if (PyBytes_Check(p)) {
      Tensor t(DType::kUInt8, {static_cast<std::int64_t>(PyBytes_GET_SIZE(p))});
      if (t.nbytes()) std::memcpy(t.data(), PyBytes_AS_STRING(p), t.nbytes());
      return t;
    }
  } else if (f.type == mr::FieldType::kString) {
    if (PyUnicode_Check(p)) return nb::cast<std::string>(nb::str(o));
  } else if (f.type == mr::FieldType::kInt32 || f.type == mr::FieldType::kInt64) {
    if ((PyLong_Check(p) && !PyBool_Check(p)) || is_scalar(o, "iu")) {
      const nb::object whole = nb::steal(PyNumber_Index(p));
      int overflow = 0;
      const long long v = whole.is_valid() ? PyLong_AsLongLongAndOverflow(whole.ptr(), &overflow) : 0;
      if (!whole.is_valid()) throw nb::python_error();
      UNDERTOW_CHECK(overflow == 0, ValueError,
                     "row {} of those to be written: the field '{}' is {}, which cannot hold {}", row, f.name, f.str(),
                     repr_of(o));
      return std::int64_t{v};
    }
  } else if (PyFloat_Check(p) || is_scalar(o, "f")) {
    return nb::cast<double>(nb::float_(o));
  }
  throw TypeError(fmt::format("row {} of those to be written: the field '{}' is {}, but its value is of type {}: {}",
                              row, f.name, f.str(), type_name_of(o), repr_of(o)));
}

std::vector<mr::Record> records_of(const mr::Schema& schema, const nb::list& rows) {
  std::vector<mr::Record> records;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!PyDict_Check(rows[i].ptr()))
      throw TypeError(fmt::format("row {} of those to be written is of type {}; a row is a dict from field to value", i,
                                  type_name_of(rows[i])));
    mr::Record record;
    for (const mr::Field& f : schema.fields) {
      PyObject* v = PyDict_GetItemString(rows[i].ptr(), f.name.c_str());
      UNDERTOW_CHECK(v, ValueError, "row {} of those to be written lacks the field '{}'", i, f.name);
      record.push_back(value_of(v, f, i));
    }
    records.push_back(std::move(record));
  }
  return records;
}

nb::object object_of(const mr::Value& value, const mr::Field& f) {
  if (const auto* n = std::get_if<std::int64_t>(&value)) return nb::int_(*n);
  if (const auto* x = std::get_if<double>(&value)) return nb::float_(*x);
  if (const auto* text = std::get_if<std::string>(&value)) return nb::str(text->data(), text->size());
  const auto& t = std::get<Tensor>(value);
  if (f.type == mr::FieldType::kBytes) return nb::bytes(t.nbytes() ? t.data() : nullptr, t.nbytes());
  return to_numpy(t);
}

void bind_mindrecord(nb::module_& m) {
  nb::class_<mr::Writer>(m, "MindRecordWriter")
      .def(nb::init<const std::string&, int, bool>())
      .def_static("append", &mr::Writer::append)
      .def("set_header_size", &mr::Writer::set_header_size)
      .def("set_page_size", &mr::Writer::set_page_size)
      .def("set_schema",
           [](mr::Writer& w, const nb::list& fields, std::string description, std::vector<std::string> index) {
             w.set_schema(schema_from(fields, std::move(description), std::move(index)));
           })
      .def("schema", [](const mr::Writer& w) { return schema_to(w.schema()); })
      .def("index", [](const mr::Writer& w) { return w.schema().index; })
      .def("rows", &mr::Writer::rows)
      .def(
          "write",
          [](mr::Writer& w, const nb::list& rows, int shard) {
            const auto records = records_of(w.schema(), rows);
            nb::gil_scoped_release release;
            if (shard < 0) w.write(records);
            else w.write_to(shard, records);
          },
          "rows"_a, "shard"_a = -1)
      .def("commit", &mr::Writer::commit, NoGil());
  nb::class_<mr::Reader>(m, "MindRecordReader")
      .def(nb::init<const std::vector<std::string>&, bool>(), "paths"_a, "siblings"_a = true, NoGil())
      .def("__len__", &mr::Reader::rows)
      .def("schema", [](const mr::Reader& r) { return schema_to(r.schema()); })
      .def("description", [](const mr::Reader& r) { return r.schema().description; })
      .def("index", [](const mr::Reader& r) { return r.schema().index; })
      .def("files", &mr::Reader::files)
      .def("file_rows", &mr::Reader::file_rows)
      .def(
          "read",
          [](const mr::Reader& r, std::int64_t row, const std::optional<std::vector<std::string>>& columns) {
            const auto& fields = r.schema().fields;
            std::vector<bool> wanted(fields.size(), !columns);
            if (columns)
              for (const std::string& c : *columns) {
                const int at = r.schema().find(c);
                UNDERTOW_CHECK(at >= 0, ValueError, "{} has no field '{}'", r.files()[0], c);
                wanted[static_cast<std::size_t>(at)] = true;
              }
            mr::Record record;
            {
              nb::gil_scoped_release release;
              r.read(row, wanted, record);
            }
            nb::dict out;
            for (std::size_t i = 0; i < fields.size(); ++i)
              if (wanted[i]) out[fields[i].name.c_str()] = object_of(record[i], fields[i]);
            return out;
          },
          "row"_a, "columns"_a.none() = nb::none());
}

}  // namespace

void bind_files(nb::module_& m) {
  bind_mindrecord(m);
  m.def("mindrecord_description",
        [](const std::string& path) { return mr::read_header(formats::InputFile(path)).schema.description; });
  m.def("mind", [](const std::vector<std::string>& files, std::vector<std::string> columns, const nb::dict& sample,
                   std::int64_t padded, bool siblings, const data::SourceOptions& o) {
    data::MindOptions options{o, std::move(columns), padded, {}, siblings};
    for (const auto& [name, value] : sample)
      options.padded_sample.emplace(nb::cast<std::string>(name), row_tensor(value));
    nb::gil_scoped_release release;
    return data::MindDataset(files, options);
  });
  m.def(
      "image_folder",
      [](const std::string& folder, std::vector<std::string> extensions, std::map<std::string, std::int64_t> classes,
         const data::SourceOptions& o) {
        return data::ImageFolderDataset(folder, {o, std::move(extensions), std::move(classes)});
      },
      NoGil());
  m.def("text_file", &data::TextFileDataset, NoGil());
  m.def("csv", [](const std::vector<std::string>& files, const std::string& delimiter, std::vector<std::string> columns,
                  const nb::list& defaults, const data::SourceOptions& o) {
    data::CsvOptions options{o, delimiter.at(0), std::move(columns), {}};
    for (nb::handle d : defaults) {
      if (PyUnicode_Check(d.ptr())) options.defaults.emplace_back(nb::cast<std::string>(d));
      else if (PyFloat_Check(d.ptr())) options.defaults.emplace_back(nb::cast<float>(d));
      else options.defaults.emplace_back(nb::cast<std::int32_t>(d));
    }
    nb::gil_scoped_release release;
    return data::CSVDataset(files, options);
  });
  m.def("tfrecord", [](const std::vector<std::string>& files, const nb::list& columns, const std::string& compression,
                       const data::SourceOptions& o) {
    data::TfRecordOptions options{o, {}, compression};
    for (nb::handle item : columns) {  // (name, dtype or None, whether it is text, shape or None)
      const nb::tuple c = nb::cast<nb::tuple>(item);
      data::TfColumn column{nb::cast<std::string>(c[0]), std::nullopt, nb::cast<bool>(c[2]), std::nullopt};
      if (!c[1].is_none()) column.dtype = to_dtype(c[1]);
      if (!c[3].is_none()) column.shape = nb::cast<std::vector<std::int64_t>>(c[3]);
      options.columns.push_back(std::move(column));
    }
    nb::gil_scoped_release release;
    return data::TFRecordDataset(files, options);
  });
  m.def("cifar10", &data::Cifar10Dataset, NoGil());
  m.def("cifar100", &data::Cifar100Dataset, NoGil());
}

}  // namespace undertow::python
