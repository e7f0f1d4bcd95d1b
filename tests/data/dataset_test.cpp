// SPDX-License-Identifier: Apache-2.0
#include "tests/data/common.h"

namespace undertow::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tensor plus(const Tensor& t, int n) { return Tensor::scalar(static_cast<std::int32_t>(t.item_as_int() + n)); }

TEST(Row, HoldsManyColumns) {
  Row r;
  for (int i = 0; i < 11; ++i) r.push_back(Tensor::scalar(i));
  EXPECT_EQ(r.size(), 11u);
  for (int i = 0; i < 11; ++i) EXPECT_EQ(r[static_cast<std::size_t>(i)].item_as_int(), i);
  const Row moved = std::move(r);
  EXPECT_EQ(moved[10].item_as_int(), 10);
  EXPECT_TRUE(r.empty());  // NOLINT(bugprone-use-after-move): a moved-from row is empty
  Row small{Tensor({1.f}), Tensor({2.f})};
  small.resize(1);
  EXPECT_EQ(small.size(), 1u);
}

TEST(Dataset, BatchStacksRows) {
  for (const Dataset& d : {numbers(10), slices(10), sequence(10)}) {
    EXPECT_EQ(all(d.batch(4)), range(10));
    EXPECT_THAT(batch_sizes(d.batch(4)), ElementsAre(4, 4, 2));
    EXPECT_THAT(batch_sizes(d.batch(4, {.drop_remainder = true})), ElementsAre(4, 4));
    EXPECT_THAT(batch_sizes(d.batch(64)), ElementsAre(10));
    EXPECT_EQ(all(d), range(10));
  }
}

TEST(Dataset, KnowsWhatItDelivers) {
  const Dataset d = NumpySlicesDataset({Tensor::zeros({10, 3}), Tensor::zeros({10}, DType::kInt64)}, {"data", "label"});
  const auto b = d.batch(4);
  EXPECT_THAT(b.get_col_names(), ElementsAre("data", "label"));
  EXPECT_THAT(b.output_shapes(), ElementsAre(Shape{4, 3}, Shape{4}));
  EXPECT_THAT(b.output_types(), ElementsAre(DType::kFloat32, DType::kInt64));
  EXPECT_THAT(d.batch(64).output_shapes(), ElementsAre(Shape{10, 3}, Shape{10}));
  EXPECT_EQ(b.get_dataset_size(), 3);
  EXPECT_EQ(b.get_batch_size(), 4);
  EXPECT_EQ(d.get_batch_size(), 1);
  EXPECT_EQ(b.repeat(5).get_repeat_count(), 5);
  EXPECT_EQ(b.repeat(5).get_dataset_size(), 15);
  EXPECT_EQ(b.repeat().get_dataset_size(), 3);
  EXPECT_EQ(b.get_repeat_count(), 1);
  EXPECT_THAT(NumpySlicesDataset({Tensor::zeros({2}), Tensor::zeros({2})}).get_col_names(),
              ElementsAre("column_0", "column_1"));
}

TEST(Dataset, SizeOfWhatCannotBeKnownIsCounted) {
  EXPECT_EQ(sequence(10).known_size(), -1);
  EXPECT_EQ(sequence(10).get_dataset_size(), 10);
  EXPECT_EQ(sequence(10).batch(4).get_dataset_size(), 3);
  EXPECT_EQ(sequence(10).batch(4, {.drop_remainder = true}).repeat(3).get_dataset_size(), 6);
  const auto even = numbers(10).filter([](const Row& r) { return r[0].item_as_int() % 2 == 0; });
  EXPECT_EQ(even.get_dataset_size(), 5);
  EXPECT_EQ(even.batch(2).get_dataset_size(), 3);
  EXPECT_EQ(even.repeat().get_dataset_size(), 5);
}

TEST(Dataset, RepeatTakeSkip) {
  for (const Dataset& d : {numbers(5), slices(5), sequence(5)}) {
    EXPECT_THAT(all(d.repeat(2)), ElementsAre(0, 1, 2, 3, 4, 0, 1, 2, 3, 4));
    EXPECT_THAT(all(d.take(2).repeat(2)), ElementsAre(0, 1, 0, 1));
    EXPECT_THAT(all(d.repeat(2).take(7)), ElementsAre(0, 1, 2, 3, 4, 0, 1));
    EXPECT_THAT(all(d.skip(3)), ElementsAre(3, 4));
    EXPECT_THAT(all(d.skip(1).take(2).repeat(3).skip(1)), ElementsAre(2, 1, 2, 1, 2));
    EXPECT_THAT(all(d.batch(2).skip(1).take(1)), ElementsAre(2, 3));
    EXPECT_THAT(all(d.batch(2).repeat(2)), ElementsAre(0, 1, 2, 3, 4, 0, 1, 2, 3, 4));
    EXPECT_THAT(batch_sizes(d.batch(2).repeat(2)), ElementsAre(2, 2, 1, 2, 2, 1));
    EXPECT_THAT(batch_sizes(d.repeat(2).batch(4)), ElementsAre(4, 4, 2));
    EXPECT_THAT(batch_sizes(d.repeat(2).batch(4, {.drop_remainder = true})), ElementsAre(4, 4));
    EXPECT_THAT(all(d.take(-1)), ElementsAre(0, 1, 2, 3, 4));
    EXPECT_THAT(all(d.repeat().take(12)), ElementsAre(0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1));
    EXPECT_EQ(d.skip(1).take(2).repeat(3).skip(1).get_dataset_size(), 5);
  }
}

TEST(Dataset, MapColumns) {
  const Dataset d = GeneratorDataset(
      [](std::int64_t i) {
        const auto v = static_cast<std::int32_t>(i);
        return Row{Tensor::scalar(v), Tensor::scalar(v * 10), Tensor::scalar(v * 100)};
      },
      3, {"a", "b", "c"}, {.shuffle = false});
  const auto row = [](const Dataset& ds, int at) {
    Ints v;
    const Row r = *ds.skip(at).begin();
    for (const Tensor& t : r) v.push_back(t.item_as_int());
    return v;
  };
  const auto add = [](const Tensor& t) { return plus(t, 1); };
  EXPECT_THAT(row(d.map(add), 2), ElementsAre(3, 20, 200));  // the leading column
  EXPECT_THAT(row(d.map(add, {.input_columns = {"c"}}), 2), ElementsAre(2, 20, 201));
  const auto renamed = d.map(add, {.input_columns = {"b"}, .output_columns = {"z"}});
  EXPECT_THAT(renamed.get_col_names(), ElementsAre("a", "z", "c"));
  const auto sum = [](const Row& r) { return Row{plus(r[0], static_cast<int>(r[1].item_as_int()))}; };
  const auto summed = d.map(sum, {.input_columns = {"c", "b"}, .output_columns = {"s"}});
  EXPECT_THAT(summed.get_col_names(), ElementsAre("s", "a"));
  EXPECT_THAT(row(summed, 1), ElementsAre(110, 1));
  const auto swap = [](const Row& r) { return Row{r[1], r[0]}; };
  EXPECT_THAT(row(d.map(swap, {.input_columns = {"a", "c"}}), 1), ElementsAre(100, 10, 1));
  EXPECT_THAT(row(d.map(swap, {.input_columns = {"c", "a"}}), 1), ElementsAre(100, 10, 1));
  const auto picked = d.project({"c", "a"}).rename({"a"}, {"n"});
  EXPECT_THAT(picked.get_col_names(), ElementsAre("c", "n"));
  EXPECT_THAT(row(picked, 1), ElementsAre(100, 1));
  EXPECT_THAT(message<ValueError>([&] { d.map(add, {.input_columns = {"q"}}); }), HasSubstr("no column 'q'"));
  EXPECT_THAT(message<DataError>([&] { all(d.map(sum, {.input_columns = {"a", "b"}})); }),
              AllOf(HasSubstr("gave 1 columns where 2"), HasSubstr("a, b, c")));
}

TEST(Dataset, MapAfterBatchSeesBatches) {
  const auto d = slices(10).batch(4).map([](const Tensor& t) {
    Tensor out(DType::kInt64, {t.shape(0), 1});
    for (std::int64_t i = 0; i < t.shape(0); ++i)
      out.data_as<std::int64_t>()[i] = t.data_as<std::int32_t>()[i] + t.shape(0);
    return out;
  });
  EXPECT_THAT(all(d), ElementsAre(4, 5, 6, 7, 8, 9, 10, 11, 10, 11));
  EXPECT_THAT(d.output_shapes(), ElementsAre(Shape{4, 1}));
}

TEST(Dataset, ProjectOfArrays) {
  const Dataset d = NumpySlicesDataset({Tensor::full({6, 2}, 1), Tensor::full({6}, 2), Tensor::full({6, 3}, 3)},
                                       {"a", "b", "c"}, {.shuffle = false});
  const auto p = d.project({"c", "b"}).batch(4);
  EXPECT_THAT(p.output_shapes(), ElementsAre(Shape{4, 3}, Shape{4}));
  for (const Row& r : p) {
    EXPECT_EQ(r[0].data_as<float>()[0], 3.f);
    EXPECT_EQ(r[1].data_as<float>()[0], 2.f);
  }
}

TEST(Dataset, ZipConcatFilter) {
  const auto a = numbers(4), b = numbers(3).map([](const Tensor& t) { return plus(t, 10); }).rename({"x"}, {"y"});
  int n = 0;
  for (const Row& r : a.zip({b})) {
    EXPECT_EQ(r[1].item_as_int(), r[0].item_as_int() + 10);
    ++n;
  }
  EXPECT_EQ(n, 3);
  EXPECT_EQ(a.zip({b}).get_dataset_size(), 3);
  EXPECT_THAT(all(a.concat(sequence(2))), ElementsAre(0, 1, 2, 3, 0, 1));
  EXPECT_THAT(batch_sizes(slices(4).concat(slices(3)).batch(3)), ElementsAre(3, 3, 1));
  EXPECT_THAT(all(slices(4).concat(numbers(3)).batch(3)), ElementsAre(0, 1, 2, 3, 0, 1, 2));
  EXPECT_THROW(a.zip({a}), ValueError);
  EXPECT_THROW(a.concat(b), ValueError);
  const auto odd = numbers(9).filter([](const Row& r) { return r[0].item_as_int() % 2 == 1; });
  EXPECT_THAT(all(odd.batch(3)), ElementsAre(1, 3, 5, 7));
  EXPECT_THAT(batch_sizes(odd.batch(3)), ElementsAre(3, 1));
}

TEST(Dataset, CollateMakesTheBatch) {
  struct Pad : CollateOp {
    Row operator()(std::span<const Row> rows, const RowContext&) override {
      std::int64_t widest = 0;
      for (const Row& r : rows) widest = std::max(widest, r[0].shape(0));
      Tensor out = Tensor::zeros({static_cast<std::int64_t>(rows.size()), widest}, DType::kInt32);
      for (std::size_t i = 0; i < rows.size(); ++i)
        std::copy_n(rows[i][0].data_as<std::int32_t>(), rows[i][0].shape(0),
                    out.data_as<std::int32_t>() + static_cast<std::int64_t>(i) * widest);
      return Row{out};
    }
  };
  const auto ragged =
      numbers(5).map([](const Tensor& t) { return Tensor::full({t.item_as_int() + 1}, 7, DType::kInt32); });
  std::vector<Shape> shapes;
  for (const Row& r : ragged.batch(2, {.collate = std::make_shared<Pad>()})) shapes.push_back(r[0].shape());
  EXPECT_THAT(shapes, ElementsAre(Shape{2, 2}, Shape{2, 4}, Shape{1, 5}));
}

TEST(Dataset, ShapesMayDifferBetweenBatches) {
  // Rows 0 and 1 have 1 element, rows 2 and 3 have 2, ...
  const auto d = numbers(6).map([](const Tensor& t) { return Tensor::full({t.item_as_int() / 2 + 1}, 1); });
  std::vector<Shape> shapes;
  for (const Row& r : d.batch(2)) shapes.push_back(r[0].shape());
  EXPECT_THAT(shapes, ElementsAre(Shape{2, 1}, Shape{2, 2}, Shape{2, 3}));
  shapes.clear();
  for (const Row& r : d) shapes.push_back(r[0].shape());
  EXPECT_THAT(shapes, ElementsAre(Shape{1}, Shape{1}, Shape{2}, Shape{2}, Shape{3}, Shape{3}));
}

TEST(Dataset, RaggedBatchNamesColumnAndRow) {
  const auto d = numbers(4).map([](const Tensor& t) { return Tensor::full({t.item_as_int() == 2 ? 5 : 4}, 1); });
  EXPECT_THAT(message<DataError>([&] { all(d.batch(4)); }),
              AllOf(HasSubstr("column 'x'"), HasSubstr("row 2"), HasSubstr("(4,)"), HasSubstr("(5,)")));
  const auto e = numbers(4).map([](const Tensor& t) { return t.item_as_int() == 1 ? Tensor::scalar(1.f) : t; });
  EXPECT_THAT(message<DataError>([&] { all(e.batch(4)); }), AllOf(HasSubstr("Float32"), HasSubstr("Int32")));
}

TEST(Dataset, WrongColumnCount) {
  const auto d = GeneratorDataset([](std::int64_t) { return Row{Tensor::scalar(1), Tensor::scalar(2)}; }, 4, {"x"});
  EXPECT_THAT(message<DataError>([&] { all(d.batch(2)); }),
              HasSubstr("gave 2 columns, but 1 column names were given: x"));
}

TEST(Dataset, BadArguments) {
  const auto d = numbers(4);
  EXPECT_THROW(d.batch(0), ValueError);
  EXPECT_THROW(d.shuffle(1), ValueError);
  EXPECT_THROW(d.repeat(0), ValueError);
  EXPECT_THROW(d.take(0), ValueError);
  EXPECT_THROW(d.skip(-1), ValueError);
  EXPECT_THROW(d.map([](const Tensor& t) { return t; }, {.num_parallel_workers = -1}), ValueError);
  EXPECT_THROW(numbers(4, {.num_shards = 2}), ValueError);
  EXPECT_THROW(numbers(4, {.num_shards = 2, .shard_id = 2}), ValueError);
  EXPECT_THROW(numbers(4, {.shuffle = true, .sampler = RandomSampler()}), ValueError);
  EXPECT_THROW(NumpySlicesDataset({Tensor::zeros({2}), Tensor::zeros({3})}), ValueError);
  EXPECT_THROW(NumpySlicesDataset({Tensor::scalar(1)}), ValueError);
  EXPECT_THROW(d.create_tuple_iterator(0), ValueError);
}

TEST(Dataset, ManyWorkersAreClampedNotRefused) {
  EXPECT_EQ(sorted(all(slices(40, {.num_parallel_workers = 500}).batch(3))), range(40));
  EXPECT_EQ(sorted(all(numbers(40, {.num_parallel_workers = 500}).batch(3))), range(40));
}

}  // namespace
}  // namespace undertow::data
