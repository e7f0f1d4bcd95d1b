// SPDX-License-Identifier: Apache-2.0
// python/src/optim_args.h: what optimizers take from Python: rates, and parameters or groups of them.
#pragma once

#include "python/src/cells.h"
#include "undertow/train/optimizer.h"

namespace undertow::python {

/// A number, a Tensor of rank 0 or 1, an iterable of numbers, or a Cell. Throws TypeError and ValueError naming
/// `optimizer` and `what`.
nn::Rate to_rate(nb::handle object, const std::string& optimizer, const char* what);
/// Parameters, or dicts with the keys params, lr, weight_decay, grad_centralization, or order_params alone.
nn::Params to_params(nb::handle object, const std::string& optimizer);
/// A float as MindSpore means it: neither an int nor a bool. Throws TypeError naming `function` and `argument`.
double to_float(nb::handle object, const char* function, const char* argument);
std::int64_t to_int(nb::handle object, const char* function, const char* argument);
bool to_bool(nb::handle object, const char* function, const char* argument);
/// An integer, a float or a NumPy number, but no bool.
double to_number(nb::handle object, const char* function, const char* argument);

/// Sets the attributes that optimizers written in Python read (parameters, is_group, dynamic_lr, ...).
void describe_optimizer(nb::handle optimizer);

/// Binds an optimizer: `make(self pointer, arguments...)` constructs it, whereupon it is described.
template <typename T, typename Construct>
void construct_optimizer(nb::pointer_and_handle<T> self, Construct construct) {
  construct();
  nb::inst_mark_ready(self.h);
  describe_optimizer(self.h);
}

void bind_optimizer_classes(nb::module_& m);

}  // namespace undertow::python
