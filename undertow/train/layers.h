// SPDX-License-Identifier: Apache-2.0
// train/layers.h: dense layers, dropout, containers; other families have headers of their own. `Dense` is the handle
// that users hold, `DenseCell` the cell behind it; so for all of them.
//
// Parameters carry MindSpore's names, so that checkpoints of one load into the other.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "undertow/train/activations.h"
#include "undertow/train/cell.h"
#include "undertow/train/initializer.h"

namespace undertow::nn {

using common::Init;

/// An activation by name (as get_activation knows it) or as a cell.
struct Activation {
  Ref<Cell> cell;
  Activation() = default;
  Activation(const char* name) : Activation(std::string(name)) {}
  /// Throws ValueError naming the known names.
  Activation(const std::string& name);
  Activation(Ref<Cell> c) : cell(std::move(c)) {}
  template <typename T>
  Activation(const Handle<T>& h) : cell(h.ref()) {}
};

// ---- Dense
struct DenseOptions {
  Init weight_init;  ///< default: HeUniform(sqrt(5))
  Init bias_init;    ///< default: U(-1/sqrt(in), 1/sqrt(in))
  bool has_bias = true;
  Activation activation;
  DType dtype = DType::kFloat32;
};
/// y = activation(x W^T + b) over the last dimension. Parameters: weight [out, in], bias [out].
class DenseCell : public Cell {
 public:
  DenseCell(std::int64_t in_channels, std::int64_t out_channels, const DenseOptions& options = {});
  Tensor construct(const Tensor& x) override;
  std::string cls_name() const override { return "Dense"; }
  std::int64_t in_channels() const { return in_; }
  std::int64_t out_channels() const { return out_; }

 private:
  std::int64_t in_, out_;
};
class Dense : public Handle<DenseCell> {
 public:
  Dense(std::int64_t in_channels, std::int64_t out_channels, const DenseOptions& options = {})
      : Handle(make_ref<DenseCell>(in_channels, out_channels, options)) {}
  Parameter weight() const { return ref()->get_param("weight"); }
  Parameter bias() const { return ref()->get_param("bias"); }
};

// ---- without parameters
class FlattenCell : public Cell {
 public:
  explicit FlattenCell(std::int64_t start_dim = 1, std::int64_t end_dim = -1) : start_(start_dim), end_(end_dim) {}
  Tensor construct(const Tensor& x) override;
  std::string cls_name() const override { return "Flatten"; }

 private:
  std::int64_t start_, end_;
};
struct DropoutOptions {
  double keep_prob = 0.5;
  std::optional<double> p;  ///< probability of a zero; takes precedence over keep_prob
};
/// In training only; what is kept is scaled by 1 / (1 - p).
class DropoutCell : public Cell {
 public:
  explicit DropoutCell(const DropoutOptions& options = {});
  Tensor construct(const Tensor& x) override;
  std::string cls_name() const override { return "Dropout"; }
  double p() const { return p_; }

 private:
  double p_;
};
class Flatten : public Handle<FlattenCell> {
 public:
  explicit Flatten(std::int64_t start_dim = 1, std::int64_t end_dim = -1)
      : Handle(make_ref<FlattenCell>(start_dim, end_dim)) {}
};
class Dropout : public Handle<DropoutCell> {
 public:
  explicit Dropout(const DropoutOptions& options = {}) : Handle(make_ref<DropoutCell>(options)) {}
};

// ---- containers
/// Cells called one after the other; named "0", "1", ...
class SequentialCellImpl : public Cell {
 public:
  explicit SequentialCellImpl(const std::vector<Ref<Cell>>& cells = {});
  void append(Ref<Cell> cell) { insert_child(std::to_string(children().size()), std::move(cell)); }
  /// Negative counts from the end. Throws IndexError.
  Ref<Cell> at(std::int64_t index) const;
  std::int64_t size() const { return static_cast<std::int64_t>(children().size()); }
  Value construct_values(const std::vector<Value>& args) override;
  std::string cls_name() const override { return "SequentialCell"; }
};
/// Cells held by number; each is called by the user.
class CellListImpl : public Cell {
 public:
  explicit CellListImpl(const std::vector<Ref<Cell>>& cells = {});
  void append(Ref<Cell> cell) { insert_child(std::to_string(children().size()), std::move(cell)); }
  Ref<Cell> at(std::int64_t index) const;
  std::int64_t size() const { return static_cast<std::int64_t>(children().size()); }
  std::string cls_name() const override { return "CellList"; }
};
template <typename T>
concept CellLike = std::is_convertible_v<T, Ref<Cell>>;
class SequentialCell : public Handle<SequentialCellImpl> {
 public:
  SequentialCell() : Handle(make_ref<SequentialCellImpl>()) {}
  explicit SequentialCell(const std::vector<Ref<Cell>>& cells) : Handle(make_ref<SequentialCellImpl>(cells)) {}
  /// SequentialCell(Dense(8, 4), ReLU(), Dense(4, 1))
  template <CellLike First, CellLike... Rest>
    requires(!std::is_same_v<std::decay_t<First>, SequentialCell> || sizeof...(Rest) > 0)
  explicit SequentialCell(const First& first, const Rest&... rest)
      : SequentialCell(std::vector<Ref<Cell>>{Ref<Cell>(first), Ref<Cell>(rest)...}) {}
  void append(const Ref<Cell>& cell) const { ref()->append(cell); }
  std::int64_t size() const { return ref()->size(); }
  Ref<Cell> operator[](std::int64_t i) const { return ref()->at(i); }
};
class CellList : public Handle<CellListImpl> {
 public:
  CellList() : Handle(make_ref<CellListImpl>()) {}
  explicit CellList(const std::vector<Ref<Cell>>& cells) : Handle(make_ref<CellListImpl>(cells)) {}
  void append(const Ref<Cell>& cell) const { ref()->append(cell); }
  std::int64_t size() const { return ref()->size(); }
  Ref<Cell> operator[](std::int64_t i) const { return ref()->at(i); }
};

}  // namespace undertow::nn
