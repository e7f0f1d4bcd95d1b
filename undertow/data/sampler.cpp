// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "undertow/base/check.h"
#include "undertow/data/source.h"
#include "undertow/data/stream.h"

namespace undertow::data {
namespace {

std::int64_t at_most(std::int64_t rows, std::int64_t num_samples) {
  return num_samples > 0 ? std::min(rows, num_samples) : rows;
}
void check_num_samples(std::int64_t num_samples) {
  UNDERTOW_CHECK(num_samples >= 0, ValueError, "num_samples must not be negative, got {}", num_samples);
}

class Sequential : public Sampler {
 public:
  Sequential(std::int64_t start, std::int64_t n) : start_(start), n_(n) {}
  std::int64_t size(std::int64_t rows) const override {
    UNDERTOW_CHECK(start_ < rows || rows == 0 || start_ == 0, IndexError,
                   "SequentialSampler: start_index is {}, but there are {} rows", start_, rows);
    return at_most(std::max<std::int64_t>(rows - start_, 0), n_);
  }
  void order(std::int64_t rows, std::uint64_t, std::int64_t, std::vector<std::int64_t>& out) const override {
    out.resize(static_cast<std::size_t>(size(rows)));
    std::iota(out.begin(), out.end(), start_);
  }

 private:
  std::int64_t start_, n_;
};

class Random : public Sampler {
 public:
  Random(bool replacement, std::int64_t n) : replacement_(replacement), n_(n) {}
  std::int64_t size(std::int64_t rows) const override {
    return replacement_ && n_ > 0 && rows > 0 ? n_ : at_most(rows, n_);
  }
  void order(std::int64_t rows, std::uint64_t seed, std::int64_t epoch, std::vector<std::int64_t>& out) const override {
    if (!replacement_) {
      out.resize(static_cast<std::size_t>(rows));
      std::iota(out.begin(), out.end(), 0);
      permute(out, seed, epoch);
      out.resize(static_cast<std::size_t>(size(rows)));
      return;
    }
    PhiloxStream r(seed, static_cast<std::uint64_t>(epoch));
    for (std::int64_t i = 0; i < size(rows); ++i)
      out.push_back(static_cast<std::int64_t>(r.below(static_cast<std::uint64_t>(rows))));
  }

 private:
  bool replacement_;
  std::int64_t n_;
};

class Subset : public Sampler {
 public:
  Subset(std::vector<std::int64_t> indices, std::int64_t n, bool shuffled)
      : indices_(std::move(indices)), n_(n), shuffled_(shuffled) {}
  std::int64_t size(std::int64_t) const override { return at_most(static_cast<std::int64_t>(indices_.size()), n_); }
  void order(std::int64_t rows, std::uint64_t seed, std::int64_t epoch, std::vector<std::int64_t>& out) const override {
    out.assign(indices_.begin(), indices_.end());
    if (shuffled_) permute(out, seed, epoch);
    out.resize(static_cast<std::size_t>(size(rows)));
  }

 private:
  std::vector<std::int64_t> indices_;
  std::int64_t n_;
  bool shuffled_;
};

class Weighted : public Sampler {
 public:
  Weighted(const std::vector<double>& weights, std::int64_t n, bool replacement)
      : weights_(weights), n_(n), replacement_(replacement) {
    double sum = 0;
    for (const double w : weights) {
      UNDERTOW_CHECK(w >= 0 && std::isfinite(w), ValueError, "weights must be finite and not negative, got {}", w);
      cumulative_.push_back(sum += w);
      positive_ += w > 0;
    }
    UNDERTOW_CHECK(sum > 0, ValueError, "the sum of the weights must be positive, got {}", sum);
    UNDERTOW_CHECK(replacement || size(0) <= positive_, ValueError,
                   "{} samples without replacement, but only {} weights are positive", size(0), positive_);
  }
  std::int64_t size(std::int64_t) const override { return n_ > 0 ? n_ : static_cast<std::int64_t>(weights_.size()); }
  void order(std::int64_t rows, std::uint64_t seed, std::int64_t epoch, std::vector<std::int64_t>& out) const override {
    UNDERTOW_CHECK(static_cast<std::int64_t>(weights_.size()) <= rows, IndexError,
                   "WeightedRandomSampler: there are {} weights, but {} rows", weights_.size(), rows);
    PhiloxStream r(seed, static_cast<std::uint64_t>(epoch));
    if (replacement_) {
      for (std::int64_t i = 0; i < size(rows); ++i) {
        const auto at = std::upper_bound(cumulative_.begin(), cumulative_.end(), r.uniform64() * cumulative_.back());
        out.push_back(std::min<std::int64_t>(at - cumulative_.begin(), static_cast<std::int64_t>(weights_.size()) - 1));
      }
      return;
    }
    // Efraimidis and Spirakis: the largest values of log(u) / w are a weighted draw without replacement.
    std::vector<std::pair<double, std::int64_t>> keys;
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      const double u = 1 - r.uniform64();
      if (weights_[i] > 0) keys.emplace_back(std::log(u) / weights_[i], static_cast<std::int64_t>(i));
    }
    std::sort(keys.begin(), keys.end(), std::greater<>());
    for (std::int64_t i = 0; i < size(rows); ++i) out.push_back(keys[static_cast<std::size_t>(i)].second);
  }

 private:
  std::vector<double> weights_, cumulative_;
  std::int64_t n_, positive_ = 0;
  bool replacement_;
};

class Distributed : public Sampler {
 public:
  Distributed(int shards, int id, bool shuffle, std::int64_t n, std::int64_t offset)
      : shards_(shards), id_(id), shuffle_(shuffle), n_(n), offset_(offset) {}
  std::int64_t size(std::int64_t rows) const override {
    if (rows == 0) return 0;
    return at_most((rows + shards_ - 1) / shards_ - (id_ < offset_ ? 1 : 0), n_);
  }
  void order(std::int64_t rows, std::uint64_t seed, std::int64_t epoch, std::vector<std::int64_t>& out) const override {
    out.resize(static_cast<std::size_t>(rows));
    std::iota(out.begin(), out.end(), 0);
    if (shuffle_) permute(out, seed, epoch);
    const std::int64_t n = size(rows);
    const std::int64_t first = id_ < offset_ ? id_ + shards_ - offset_ : id_ - std::max<std::int64_t>(offset_, 0);
    // In place: what is read, at first + i * shards, is not before what is written, at i. Only the last row wraps.
    const std::int64_t last = n > 0 ? out[static_cast<std::size_t>((first + (n - 1) * shards_) % rows)] : 0;
    for (std::int64_t i = 0; i + 1 < n; ++i)
      out[static_cast<std::size_t>(i)] = out[static_cast<std::size_t>(first + i * shards_)];
    out.resize(static_cast<std::size_t>(n));
    if (n > 0) out.back() = last;
  }

 private:
  int shards_, id_;
  bool shuffle_;
  std::int64_t n_, offset_;
};

class Chained : public Sampler {
 public:
  Chained(std::shared_ptr<const Sampler> child, std::shared_ptr<const Sampler> parent)
      : child_(std::move(child)), parent_(std::move(parent)) {}
  std::int64_t size(std::int64_t rows) const override { return parent_->size(child_->size(rows)); }
  void order(std::int64_t rows, std::uint64_t seed, std::int64_t epoch, std::vector<std::int64_t>& out) const override {
    std::vector<std::int64_t> chosen;
    child_->order(rows, seed, epoch, chosen);
    parent_->order(static_cast<std::int64_t>(chosen.size()), seed + 1, epoch, out);
    for (std::int64_t& i : out) {
      UNDERTOW_CHECK(i >= 0 && i < static_cast<std::int64_t>(chosen.size()), IndexError,
                     "a sampler gave {}, but its child gives {} rows", i, chosen.size());
      i = chosen[static_cast<std::size_t>(i)];
    }
  }
  std::shared_ptr<const Sampler> bind(Source& source) const override {
    auto child = child_->bind(source), parent = parent_->bind(source);
    if (!child && !parent) return nullptr;
    return std::make_shared<Chained>(child ? child : child_, parent ? parent : parent_);
  }

 private:
  std::shared_ptr<const Sampler> child_, parent_;
};

class FileOrder : public Sampler {
 public:
  FileOrder(std::vector<std::int64_t> file_rows, bool files, bool rows)
      : file_rows_(std::move(file_rows)), files_(files), rows_(rows) {}
  std::int64_t size(std::int64_t rows) const override { return rows; }
  void order(std::int64_t rows, std::uint64_t seed, std::int64_t epoch, std::vector<std::int64_t>& out) const override {
    std::vector<std::int64_t> starts, files(file_rows_.size()), part;
    std::int64_t at = 0;
    for (const std::int64_t n : file_rows_) {
      starts.push_back(at);
      at += n;
    }
    std::iota(files.begin(), files.end(), 0);
    if (files_) permute(files, seed, epoch);
    for (const std::int64_t f : files) {
      const auto i = static_cast<std::size_t>(f);
      part.resize(static_cast<std::size_t>(file_rows_[i]));
      std::iota(part.begin(), part.end(), starts[i]);
      if (rows_) permute(part, seed + 1 + static_cast<std::uint64_t>(f), epoch);
      out.insert(out.end(), part.begin(), part.end());
    }
    for (; at < rows; ++at) out.push_back(at);  // what lies in no file: padded rows
  }

 private:
  std::vector<std::int64_t> file_rows_;
  bool files_, rows_;
};

class PK : public Sampler {
 public:
  PK(std::int64_t num_val, std::int64_t num_class, bool shuffle, std::string column, std::int64_t n)
      : num_val_(num_val), num_class_(num_class), shuffle_(shuffle), column_(std::move(column)), n_(n) {}
  std::shared_ptr<const Sampler> bind(Source& source) const override {
    const auto labels = source.labels(column_);
    UNDERTOW_CHECK(labels, TypeError, "PKSampler: {} has no column '{}' of whole numbers that tells the classes",
                   source.name(), column_);
    auto bound = std::make_shared<PK>(*this);
    std::map<std::int64_t, std::vector<std::int64_t>> classes;
    for (std::size_t i = 0; i < labels->size(); ++i) classes[(*labels)[i]].push_back(static_cast<std::int64_t>(i));
    for (auto& [label, rows] : classes) {
      if (num_class_ > 0 && static_cast<std::int64_t>(bound->classes_.size()) == num_class_) break;
      bound->classes_.push_back(std::move(rows));
    }
    return bound;
  }
  std::int64_t size(std::int64_t) const override {
    return at_most(num_val_ * static_cast<std::int64_t>(classes_.size()), n_);
  }
  void order(std::int64_t rows, std::uint64_t seed, std::int64_t epoch, std::vector<std::int64_t>& out) const override {
    std::vector<std::int64_t> order(classes_.size());
    std::iota(order.begin(), order.end(), 0);
    if (shuffle_) permute(order, seed, epoch);
    for (const std::int64_t c : order) {
      std::vector<std::int64_t> of = classes_[static_cast<std::size_t>(c)];
      if (shuffle_) permute(of, seed + 1 + static_cast<std::uint64_t>(c), epoch);
      for (std::int64_t k = 0; k < num_val_; ++k) out.push_back(of[static_cast<std::size_t>(k) % of.size()]);
    }
    out.resize(static_cast<std::size_t>(size(rows)));
  }

 private:
  std::int64_t num_val_, num_class_;
  bool shuffle_;
  std::string column_;
  std::int64_t n_;
  std::vector<std::vector<std::int64_t>> classes_;  // rows of each
};

}  // namespace

// Fisher and Yates, with several bounded numbers from each 64 random bits: the bits are a fraction, whose product with
// a bound has the number above the point and a new fraction below it. The last fraction tells whether all are unbiased.
// Source: Brackett-Rozinsky and Lemire, "Batched ranged random integer generation", 2024.
void permute(std::vector<std::int64_t>& values, std::uint64_t seed, std::int64_t epoch) {
  PhiloxStream random(seed, static_cast<std::uint64_t>(epoch));
  constexpr int kMost = 6;
  for (std::uint64_t left = values.size(); left > 1;) {
    int batch = left <= 1u << 9 ? 6 : left <= 1u << 11 ? 5 : left <= 1u << 14 ? 4 : left <= 1u << 19 ? 3 : 2;
    batch = static_cast<int>(std::min<std::uint64_t>(static_cast<std::uint64_t>(batch), left - 1));
    if (left > std::uint64_t{1} << 30) batch = 1;
    std::uint64_t product = 1, fraction, picks[kMost];
    for (int k = 0; k < batch; ++k) product *= left - static_cast<std::uint64_t>(k);
    const auto draw = [&] {
      fraction = random.next64();
      for (int k = 0; k < batch; ++k) {
        const auto m = static_cast<unsigned __int128>(fraction) * (left - static_cast<std::uint64_t>(k));
        picks[k] = static_cast<std::uint64_t>(m >> 64);
        fraction = static_cast<std::uint64_t>(m);
      }
    };
    draw();
    if (fraction < product)
      for (const std::uint64_t least = (0 - product) % product; fraction < least;) draw();
    for (int k = 0; k < batch; ++k) std::swap(values[--left], values[picks[k]]);
  }
}

std::shared_ptr<const Sampler> ChainedSampler(std::shared_ptr<const Sampler> child,
                                              std::shared_ptr<const Sampler> parent) {
  UNDERTOW_CHECK(child && parent, ValueError, "ChainedSampler needs two samplers");
  return std::make_shared<Chained>(std::move(child), std::move(parent));
}
std::shared_ptr<const Sampler> FileOrderSampler(std::vector<std::int64_t> file_rows, bool files, bool rows) {
  return std::make_shared<FileOrder>(std::move(file_rows), files, rows);
}
std::shared_ptr<const Sampler> PKSampler(std::int64_t num_val, std::int64_t num_class, bool shuffle,
                                         std::string class_column, std::int64_t num_samples) {
  check_num_samples(num_samples);
  UNDERTOW_CHECK(num_val >= 1, ValueError, "num_val must be at least 1, got {}", num_val);
  UNDERTOW_CHECK(num_class >= 0, ValueError, "num_class must not be negative, got {}", num_class);
  return std::make_shared<PK>(num_val, num_class, shuffle, std::move(class_column), num_samples);
}
std::shared_ptr<const Sampler> SequentialSampler(std::int64_t start_index, std::int64_t num_samples) {
  check_num_samples(num_samples);
  UNDERTOW_CHECK(start_index >= 0, ValueError, "start_index must not be negative, got {}", start_index);
  return std::make_shared<Sequential>(start_index, num_samples);
}
std::shared_ptr<const Sampler> RandomSampler(bool replacement, std::int64_t num_samples) {
  check_num_samples(num_samples);
  return std::make_shared<Random>(replacement, num_samples);
}
std::shared_ptr<const Sampler> SubsetSampler(std::vector<std::int64_t> indices, std::int64_t num_samples) {
  check_num_samples(num_samples);
  return std::make_shared<Subset>(std::move(indices), num_samples, false);
}
std::shared_ptr<const Sampler> SubsetRandomSampler(std::vector<std::int64_t> indices, std::int64_t num_samples) {
  check_num_samples(num_samples);
  return std::make_shared<Subset>(std::move(indices), num_samples, true);
}
std::shared_ptr<const Sampler> WeightedRandomSampler(std::vector<double> weights, std::int64_t num_samples,
                                                     bool replacement) {
  check_num_samples(num_samples);
  return std::make_shared<Weighted>(weights, num_samples, replacement);
}
std::shared_ptr<const Sampler> DistributedSampler(int num_shards, int shard_id, bool shuffle, std::int64_t num_samples,
                                                  std::int64_t offset) {
  check_num_samples(num_samples);
  UNDERTOW_CHECK(num_shards >= 1, ValueError, "num_shards must be at least 1, got {}", num_shards);
  UNDERTOW_CHECK(shard_id >= 0 && shard_id < num_shards, ValueError, "shard_id must be in [0, {}), got {}", num_shards,
                 shard_id);
  UNDERTOW_CHECK(offset < num_shards, ValueError, "offset must be less than num_shards ({}), got {}", num_shards,
                 offset);
  return std::make_shared<Distributed>(num_shards, shard_id, shuffle, num_samples, offset);
}

}  // namespace undertow::data
