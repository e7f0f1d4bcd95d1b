// SPDX-License-Identifier: Apache-2.0
// train/amp_report.h: what mixed precision does to a network: the dtype of each cell, the casts that a step makes, and
// how near its values come to the limits of their type.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "undertow/train/callback.h"
#include "undertow/train/cell.h"

namespace undertow {
class Model;
}

namespace undertow::amp {

struct Report {
  struct CellRow {
    std::string path, cls;
    std::string dtype;  ///< "Float32", "BFloat16", ..., or "by operator" at level auto
    std::string why;
  };
  /// A tensor that a step writes only to change its type.
  struct CastRow {
    std::string edge;  ///< "input", "weight", "output", or "inside" of the network
    std::string cell;
    std::string from, to;
    std::int64_t bytes = 0;
  };
  std::vector<CellRow> cells;
  bool compiled = false;       ///< there is a program to take the casts from
  std::vector<CastRow> casts;  ///< of the newest training step that uses the network's parameters, else of another step
  std::string str() const;     ///< as tables
};
Report report(const Ref<nn::Cell>& network);

/// Shows, after `steps` training steps or at the end of a run that is shorter, the largest absolute value that each
/// cell of the model's network gave, beside the largest number of its type. The model calls it by itself: it needs not
/// be passed to train. Compiled steps hold the maxima as state, so a sunk loop is watched without being woken; steps
/// that loss scaling skips count too.
class WatchImpl : public Callback {
 public:
  struct Row {
    std::string path, cls;
    DType dtype = DType::kFloat32;
    double largest = 0, limit = 0;  ///< largest is inf or NaN where such a value was seen
  };
  /// Throws ValueError for steps below 1.
  WatchImpl(const Ref<nn::Cell>& network, std::int64_t steps);
  ~WatchImpl() override;
  void on_train_step_end(RunContext& context) override;
  void on_train_end(RunContext& context) override;
  bool follows_fit_evaluation() const override { return false; }
  std::string cls_name() const override { return "Watch"; }

  bool done() const { return done_; }
  std::vector<Row> rows() const;  ///< of the cells that ran so far, in the order of their calls
  std::string str() const;

 private:
  struct Probe;
  void finish();

  std::vector<std::shared_ptr<Probe>> probes_;
  std::int64_t steps_, seen_ = 0;
  bool done_ = false;
};
Ref<WatchImpl> watch(Model& model, std::int64_t steps);

}  // namespace undertow::amp
