// SPDX-License-Identifier: Apache-2.0
// ops/print.h: printing values from within a program, at every step, in order, whoever runs it.
//
// A compiled step hands its values to a bounded queue; the thread that waits for the command empties it about every
// 20 ms and at the end, and a full queue makes the step wait. Eagerly a value is printed at once.
#pragma once

#include <string>
#include <vector>

#include "undertow/tensor/tensor.h"

namespace undertow::ops {

/// Text, or a tensor whose value is printed.
struct Printed {
  Printed(std::string t) : text(std::move(t)) {}
  Printed(const char* t) : text(t) {}
  Printed(const Tensor& t) : tensor(t) {}
  std::string text;
  Tensor tensor;
};

/// Prints each item and a new line, values as NumPy's str() shows them. A gradient passes by it.
void print_(const std::vector<Printed>& items);
/// The same with what stands between and after the items. `flush`: the stream, too.
void print_(const std::vector<Printed>& items, const std::string& separator, const std::string& end,
            bool flush = false);

/// A text with one "{}" for each value ("{{" and "}}" stand for single braces), and the values.
struct PrintRecord {
  std::string format;
  std::vector<Tensor> values;
  bool flush = false;
};
/// Where records go; the default writes to std::cout. It is called on the thread that waits for the command (eagerly:
/// the caller's), and may throw.
void set_print_writer(void (*writer)(const PrintRecord& record));
/// The record with its values put in by `text_of`.
std::string print_text(const PrintRecord& record, std::string (*text_of)(const Tensor&));

/// Writes what the steps have printed so far, in order. For the thread that waits for a command.
void drain_prints();

}  // namespace undertow::ops
