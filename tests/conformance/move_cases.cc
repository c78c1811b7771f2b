#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "tests/conformance/op_cases.h"

namespace weft {
namespace {

void AddCopies(uint64_t seed, std::vector<OpCase>& cases) {
  for (const DTypeInfo& info : AllDTypes()) {
    if (!info.codec) continue;
    CaseBuilder to(++seed);
    const NodeId stored = to.builder().Copy(to.Normal({512, 3, 2, 1}), info.dtype);
    cases.push_back(
        std::move(to).Finish(absl::StrCat("copy to ", AbslView(info.name)), stored, kExact));
    CaseBuilder from(++seed);
    const NodeId read = from.builder().Copy(from.Normal({256, 5, 1, 1}, info.dtype), DType::kF32);
    cases.push_back(
        std::move(from).Finish(absl::StrCat("copy from ", AbslView(info.name)), read, kExact));
    CaseBuilder same(++seed);
    const NodeId weights = same.Normal({256, 4, 3, 1}, info.dtype);
    const NodeId permuted = same.builder().Permute(weights, {0, 2, 1, 3});
    const NodeId packed = same.builder().Copy(permuted, info.dtype);
    cases.push_back(std::move(same).Finish(absl::StrCat("copy permuted ", AbslView(info.name)),
                                           packed, kExact));
  }
  for (const DType dtype : {DType::kF32, DType::kF16}) {
    CaseBuilder builder(++seed);
    const NodeId turned = builder.builder().Transpose(builder.Normal({37, 11, 2, 1}));
    const NodeId result = builder.builder().Copy(turned, dtype);
    cases.push_back(std::move(builder).Finish(
        absl::StrCat("copy transposed ", AbslView(DTypeName(dtype))), result, kExact));
  }
  CaseBuilder builder(++seed);
  const NodeId integers = builder.builder().Transpose(builder.Integers({5, 7, 1, 1}, -9, 9));
  const NodeId result = builder.builder().Copy(integers, DType::kI32);
  cases.push_back(std::move(builder).Finish("copy I32", result, kExact));
}

void AddShapes(uint64_t seed, std::vector<OpCase>& cases) {
  for (int32_t axis = 0; axis < 4; ++axis) {
    CaseBuilder builder(++seed);
    Extents ne = {5, 3, 2, 2};
    const NodeId a = builder.Normal(ne);
    ne[axis] = 4;
    const NodeId b = builder.Normal(ne);
    const NodeId result = builder.builder().Concat(a, b, axis);
    cases.push_back(std::move(builder).Finish(absl::StrCat("concat axis ", axis), result, kExact));
  }
  CaseBuilder turned(++seed);
  const NodeId a = turned.builder().Transpose(turned.Normal({5, 3, 1, 1}));
  const NodeId joined = turned.builder().Concat(a, turned.Normal({3, 2, 1, 1}), 1);
  cases.push_back(std::move(turned).Finish("concat transposed", joined, kExact));
  for (const Extents& ne : {Extents{3, 1, 2, 1}, Extents{1, 1, 1, 1}, Extents{12, 4, 2, 3}}) {
    CaseBuilder builder(++seed);
    const NodeId result = builder.builder().Repeat(builder.Normal(ne), {12, 4, 2, 3});
    cases.push_back(
        std::move(builder).Finish(absl::StrCat("repeat", ExtentsText(ne)), result, kExact));
  }
  CaseBuilder repeated(++seed);
  const NodeId flipped = repeated.builder().Transpose(repeated.Normal({4, 3, 1, 1}));
  const NodeId twice = repeated.builder().Repeat(flipped, {6, 4, 2, 1});
  cases.push_back(std::move(repeated).Finish("repeat transposed", twice, kExact));
  CaseBuilder pad(++seed);
  const NodeId padded =
      pad.builder().Make(Op::kPad, PadAttributes{{3, 0, 1, 2}}, {pad.Normal({5, 4, 2, 1})});
  cases.push_back(std::move(pad).Finish("pad", padded, kExact));
  CaseBuilder fill(++seed);
  const NodeId filled = fill.builder().Make(Op::kFill, FillAttributes{{77, 3, 1, 1}, -1.5f}, {});
  cases.push_back(std::move(fill).Finish("fill", filled, kExact));
  CaseBuilder diag(++seed);
  const NodeId diagonal = diag.builder().Make(Op::kDiag, {}, {diag.Normal({6, 1, 2, 2})});
  cases.push_back(std::move(diag).Finish("diag", diagonal, kExact));
  for (const bool lower : {false, true}) {
    for (const bool with : {false, true}) {
      CaseBuilder builder(++seed);
      const NodeId result = builder.builder().Make(Op::kTri, TriangleAttributes{lower, with},
                                                   {builder.Normal({7, 7, 3, 1})});
      cases.push_back(std::move(builder).Finish(absl::StrCat("tri ", lower, with), result, kExact));
    }
  }
}

void AddGetRows(uint64_t seed, std::vector<OpCase>& cases) {
  for (const DTypeInfo& info : AllDTypes()) {
    if (!info.codec) continue;
    CaseBuilder builder(++seed);
    const NodeId table = builder.Normal({256, 9, 2, 1}, info.dtype);
    const NodeId ids = builder.Integers({7, 2, 1, 1}, -1, 8);
    const NodeId result = builder.builder().GetRows(table, ids);
    cases.push_back(
        std::move(builder).Finish(absl::StrCat("get_rows ", AbslView(info.name)), result, kExact));
  }
  for (const DType dtype : {DType::kF32, DType::kQ8_0}) {
    CaseBuilder builder(++seed);
    const NodeId table = builder.Normal({64, 9, 1, 1}, dtype);
    const NodeId ids = builder.Integers({7, 1, 1, 1}, {-1, 0, 99, 100, 104, 108, 109});
    const NodeId result =
        builder.builder().Make(Op::kGetRows, GetRowsAttributes{100, true}, {table, ids});
    cases.push_back(std::move(builder).Finish(
        absl::StrCat("get_rows of part ", AbslView(DTypeName(dtype))), result, kExact));
  }
  CaseBuilder integers(++seed);
  const NodeId row = integers.builder().GetRows(integers.Integers({3, 5, 1, 1}, -99, 99),
                                                integers.Integers({4, 1, 1, 1}, -1, 4));
  cases.push_back(std::move(integers).Finish("get_rows I32", row, kExact));
  CaseBuilder none(++seed);
  const NodeId nothing =
      none.builder().GetRows(none.Normal({8, 5, 1, 1}), none.Integers({0, 1, 1, 1}, 0, 0));
  cases.push_back(std::move(none).Finish("get_rows of none", nothing, kExact));
}

void AddSetRows(uint64_t seed, std::vector<OpCase>& cases) {
  for (const DTypeInfo& info : AllDTypes()) {
    if (!info.codec) continue;
    CaseBuilder builder(++seed);
    const NodeId table = builder.Normal({256, 9, 2, 1}, info.dtype);
    const NodeId rows = builder.Normal({256, 4, 2, 1});
    const NodeId ids = builder.Integers({4, 2, 1, 1}, {8, -1, 0, 3, 1, 2, 8, 2});
    const NodeId result = builder.builder().Make(Op::kSetRows, {}, {table, rows, ids});
    cases.push_back(
        std::move(builder).Finish(absl::StrCat("set_rows ", AbslView(info.name)), result, kExact));
  }
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kQ8_0}) {
    CaseBuilder builder(++seed);
    const NodeId pages = builder.Normal({64, kPageTokens, 3, 5}, dtype);
    const NodeId rows = builder.Normal({64, 3, 6, 1});
    const NodeId slots = builder.Integers({6, 1, 1, 1}, {17, 79, 0, 33, 34, 16});
    const NodeId result = builder.builder().KvStore(pages, rows, slots);
    cases.push_back(std::move(builder).Finish(absl::StrCat("kv_store ", AbslView(DTypeName(dtype))),
                                              result, kExact));
  }
  CaseBuilder turned(++seed);
  const NodeId pages = turned.Normal({8, kPageTokens, 3, 5}, DType::kF16);
  const NodeId rows = turned.builder().Permute(turned.Normal({8, 6, 3, 1}), {0, 2, 1, 3});
  const NodeId result =
      turned.builder().KvStore(pages, rows, turned.Integers({6, 1, 1, 1}, {1, 2, 3, 20, 30, 40}));
  cases.push_back(std::move(turned).Finish("kv_store permuted", result, kExact));
}

}  // namespace

std::vector<OpCase> MoveCases(uint64_t seed) {
  std::vector<OpCase> cases;
  AddCopies(seed += 100, cases);
  AddShapes(seed += 100, cases);
  AddGetRows(seed += 100, cases);
  AddSetRows(seed += 100, cases);
  return cases;
}

}  // namespace weft
