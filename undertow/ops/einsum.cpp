// SPDX-License-Identifier: Apache-2.0
// Einstein summation. Operands are brought to one order of labels and met pair by pair: labels that no later operand
// and not the result need are summed by a matrix product, or before it where only one side has them.
#include <algorithm>
#include <map>

#include "undertow/base/check.h"
#include "undertow/ops/diagonal.h"
#include "undertow/ops/linalg.h"
#include "undertow/ops/precision.h"

namespace undertow::ops {
namespace {

using Ints = std::vector<std::int64_t>;

/// A tensor whose i-th axis carries the i-th label. The ellipsis's axes are labelled '0', '1', ... from the right.
struct Term {
  std::string labels;
  Tensor x;
};

std::string without(std::string s, const std::string& drop) {
  std::erase_if(s, [&](char c) { return drop.find(c) != std::string::npos; });
  return s;
}

std::string labels_of(std::string text, int rank, const std::string& equation) {
  const auto dots = text.find("...");
  const int named = static_cast<int>(text.size()) - (dots == std::string::npos ? 0 : 3);
  UNDERTOW_CHECK(dots == std::string::npos ? named == rank : named <= rank, ShapeError,
                 "einsum '{}': '{}' does not fit a tensor of {} dimensions", equation, text, rank);
  if (dots == std::string::npos) return text;
  std::string extra;
  for (int i = rank - named; i-- > 0;) extra += static_cast<char>('0' + i);
  return text.replace(dots, 3, extra);
}

/// Repeated labels become one by a diagonal.
Term single(Term t) {
  for (std::size_t i = 0; i < t.labels.size(); ++i)
    for (std::size_t j = i + 1; j < t.labels.size(); ++j)
      if (t.labels[i] == t.labels[j]) {
        const char label = t.labels[i];
        UNDERTOW_CHECK(t.x.shape(static_cast<int>(i)) == t.x.shape(static_cast<int>(j)), ShapeError,
                       "einsum: label '{}' stands for {} and {} elements", label, t.x.shape(static_cast<int>(i)),
                       t.x.shape(static_cast<int>(j)));
        t.x = diagonal(t.x, 0, static_cast<std::int64_t>(i), static_cast<std::int64_t>(j));
        t.labels.erase(j, 1).erase(i, 1);
        t.labels += label;
        return single(t);
      }
  return t;
}

Term sum_over(Term t, const std::string& labels) {
  Axes axes;
  for (std::size_t i = 0; i < t.labels.size(); ++i)
    if (labels.find(t.labels[i]) != std::string::npos) axes.push_back(static_cast<std::int64_t>(i));
  if (!axes.empty()) t.x = reduce_sum(t.x, axes);
  t.labels = without(t.labels, labels);
  return t;
}

/// With its axes in the given order; labels that it lacks have extent 1.
Tensor ordered(const Term& t, const std::string& order) {
  Ints perm, shape;
  for (const char c : order) {
    const auto at = t.labels.find(c);
    if (at == std::string::npos) {
      shape.push_back(1);
      continue;
    }
    perm.push_back(static_cast<std::int64_t>(at));
    shape.push_back(t.x.shape(static_cast<int>(at)));
  }
  return reshape(perm.empty() ? t.x : transpose(t.x, perm), shape);
}

/// The product of two, summed over labels that are not in `keep`.
Term meet(Term a, Term b, const std::string& keep) {
  a = sum_over(a, without(without(a.labels, b.labels), keep));
  b = sum_over(b, without(without(b.labels, a.labels), keep));
  std::string batch, contracted, left, right;
  for (const char c : a.labels) {
    if (b.labels.find(c) == std::string::npos) left += c;
    else if (keep.find(c) != std::string::npos) batch += c;
    else contracted += c;
  }
  for (const char c : b.labels)
    if (a.labels.find(c) == std::string::npos) right += c;
  if (contracted.empty()) {
    const std::string order = batch + left + right;
    return {order, mul(ordered(a, order), ordered(b, order))};
  }
  const Tensor x = ordered(a, batch + left + contracted), y = ordered(b, batch + contracted + right);
  const auto size = [](const Tensor& t, std::size_t from, std::size_t count) {
    std::int64_t n = 1;
    for (std::size_t i = 0; i < count; ++i) n *= t.shape(static_cast<int>(from + i));
    return n;
  };
  const auto split = [&](const Tensor& t, std::size_t first, std::size_t second) {
    Ints s;
    for (std::size_t i = 0; i < batch.size(); ++i) s.push_back(t.shape(static_cast<int>(i)));
    s.push_back(size(t, batch.size(), first));
    s.push_back(size(t, batch.size() + first, second));
    return reshape(t, s);
  };
  for (std::size_t i = 0; i < contracted.size(); ++i) {
    const std::int64_t n = x.shape(static_cast<int>(batch.size() + left.size() + i)),
                       m = y.shape(static_cast<int>(batch.size() + i));
    UNDERTOW_CHECK(n == m, ShapeError, "einsum: label '{}' stands for {} and {} elements", contracted[i], n, m);
  }
  const Tensor z = matmul(split(x, left.size(), contracted.size()), split(y, contracted.size(), right.size()));
  Ints s;
  for (std::size_t i = 0; i < batch.size(); ++i) s.push_back(z.shape(static_cast<int>(i)));
  for (std::size_t i = 0; i < left.size(); ++i) s.push_back(x.shape(static_cast<int>(batch.size() + i)));
  for (std::size_t i = 0; i < right.size(); ++i)
    s.push_back(y.shape(static_cast<int>(batch.size() + contracted.size() + i)));
  return {batch + left + right, reshape(z, s)};
}

}  // namespace

Tensor einsum(const std::string& equation, const std::vector<Tensor>& operands) {
  std::string text = without(equation, " "), result;
  const auto arrow = text.find("->");
  const bool given = arrow != std::string::npos;
  if (given) result = text.substr(arrow + 2), text.resize(arrow);
  std::vector<std::string> inputs{""};
  for (const char c : text) {
    UNDERTOW_CHECK(std::isalpha(static_cast<unsigned char>(c)) || c == '.' || c == ',', ValueError,
                   "einsum '{}': '{}' is not a label", equation, c);
    if (c == ',') inputs.emplace_back();
    else inputs.back() += c;
  }
  UNDERTOW_CHECK(inputs.size() == operands.size(), ValueError, "einsum '{}': {} operands are described, {} given",
                 equation, inputs.size(), operands.size());
  DType dtype = read_type(operands[0]);
  for (const auto& x : operands) dtype = undertow::promote(dtype, read_type(x));

  std::vector<Term> terms;
  std::map<char, int> seen;
  int dots = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    Term t{labels_of(inputs[i], operands[i].ndim(), equation), cast(operands[i], dtype)};
    for (const char c : t.labels) {
      ++seen[c];
      if (c >= '0' && c <= '9') dots = std::max(dots, c - '0' + 1);
    }
    terms.push_back(single(std::move(t)));
  }
  std::string ellipsis;
  for (int i = dots; i-- > 0;) ellipsis += static_cast<char>('0' + i);
  if (given) {
    if (const auto at = result.find("..."); at != std::string::npos) result.replace(at, 3, ellipsis);
    for (const char c : result)
      UNDERTOW_CHECK(seen.contains(c) && std::count(result.begin(), result.end(), c) == 1, ValueError,
                     "einsum '{}': '{}' of the result is not a label of the operands, or appears twice", equation, c);
  } else {
    result = ellipsis;
    for (const auto& [c, n] : seen)
      if (n == 1 && std::isalpha(static_cast<unsigned char>(c))) result += c;
  }
  Term acc = terms[0];
  for (std::size_t i = 1; i < terms.size(); ++i) {
    std::string keep = result;
    for (std::size_t j = i + 1; j < terms.size(); ++j) keep += terms[j].labels;
    acc = meet(acc, terms[i], keep);
  }
  return ordered(sum_over(acc, without(acc.labels, result)), result);
}

}  // namespace undertow::ops
