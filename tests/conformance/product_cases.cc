#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "tests/conformance/op_cases.h"

namespace weft {
namespace {

void AddProduct(DType dtype, const Extents& a, const Extents& b, uint64_t seed,
                std::vector<OpCase>& cases) {
  CaseBuilder builder(seed);
  const NodeId weights = builder.Normal(a, dtype);
  const NodeId result = builder.builder().MulMat(weights, builder.Normal(b));
  cases.push_back(std::move(builder).Finish(
      absl::StrCat("mul_mat ", AbslView(DTypeName(dtype)), ExtentsText(a), ExtentsText(b)), result,
      ProductTolerance(dtype, a[0])));
}

void AddProducts(uint64_t seed, std::vector<OpCase>& cases) {
  for (const DTypeInfo& info : AllDTypes()) {
    if (!info.codec) continue;
    const int64_t block = info.block_elements == 1 ? 33 : info.block_elements;
    AddProduct(info.dtype, {block, 1, 1, 1}, {block, 1, 1, 1}, ++seed, cases);
    AddProduct(info.dtype, {block, 19, 1, 1}, {block, 5, 1, 1}, ++seed, cases);
    AddProduct(info.dtype, {1280, 67, 1, 1}, {1280, 1, 1, 1}, ++seed, cases);
    AddProduct(info.dtype, {1280, 300, 1, 1}, {1280, 37, 1, 1}, ++seed, cases);
    AddProduct(info.dtype, {512, 40, 2, 1}, {512, 3, 4, 2}, ++seed, cases);
    AddProduct(info.dtype, {512, 16, 1, 1}, {512, 0, 1, 1}, ++seed, cases);
  }
  AddProduct(DType::kF32, {1, 1, 1, 1}, {1, 1, 1, 1}, ++seed, cases);
  AddProduct(DType::kF16, {7, 3, 2, 3}, {7, 2, 6, 3}, ++seed, cases);
  AddProduct(DType::kF32, {0, 3, 1, 1}, {0, 2, 1, 1}, ++seed, cases);
  // Few rows, many columns: a router.
  AddProduct(DType::kF32, {256, 8, 1, 1}, {256, 300, 1, 1}, ++seed, cases);
  CaseBuilder builder(++seed);
  const NodeId weights = builder.Normal({64, 6, 5, 1}, DType::kQ8_0);
  const NodeId turned = builder.builder().Permute(weights, {0, 2, 1, 3});
  const NodeId columns = builder.builder().Permute(builder.Normal({64, 6, 4, 1}), {0, 2, 1, 3});
  const NodeId result = builder.builder().MulMat(turned, columns);
  cases.push_back(
      std::move(builder).Finish("mul_mat permuted", result, ProductTolerance(DType::kQ8_0, 64)));
}

struct Experts {
  int64_t k;
  int64_t m;
  int64_t experts;
  int64_t used;
  int64_t tokens;
  bool shared;  // one column for all slots of a token
};

void AddExperts(DType dtype, const Experts& shape, uint64_t seed, std::vector<OpCase>& cases) {
  CaseBuilder builder(seed);
  const NodeId weights = builder.Normal({shape.k, shape.m, shape.experts, 1}, dtype);
  const NodeId columns = builder.Normal({shape.k, shape.shared ? 1 : shape.used, shape.tokens, 1});
  const NodeId ids = builder.Integers({shape.used, shape.tokens, 1, 1}, -1, shape.experts - 1);
  const NodeId result = builder.builder().MulMatId(weights, columns, ids);
  cases.push_back(std::move(builder).Finish(
      absl::StrCat("mul_mat_id ", AbslView(DTypeName(dtype)), " ", shape.k, "x", shape.m, " of ",
                   shape.experts, ", ", shape.used, "x", shape.tokens, " shared ", shape.shared),
      result, ProductTolerance(dtype, shape.k)));
}

}  // namespace

std::vector<OpCase> ProductCases(uint64_t seed) {
  std::vector<OpCase> cases;
  AddProducts(seed += 200, cases);
  for (const DTypeInfo& info : AllDTypes()) {
    if (!info.codec) continue;
    AddExperts(info.dtype, {256, 50, 4, 2, 1, true}, ++seed, cases);
    AddExperts(info.dtype, {256, 130, 8, 3, 21, false}, ++seed, cases);
    AddExperts(info.dtype, {512, 33, 3, 2, 90, true}, ++seed, cases);
  }
  AddExperts(DType::kF32, {5, 3, 2, 1, 0, true}, ++seed, cases);
  AddExperts(DType::kF32, {1, 1, 1, 1, 1, true}, ++seed, cases);
  for (const bool lower : {false, true}) {
    for (const bool diagonal : {false, true}) {
      CaseBuilder builder(++seed);
      const NodeId a = builder.Uniform({12, 12, 2, 1}, 0.5f, 1);
      const NodeId b = builder.Normal({5, 12, 2, 1});
      const NodeId result =
          builder.builder().Make(Op::kSolveTri, TriangleAttributes{lower, diagonal}, {a, b});
      // Errors grow along the rows.
      cases.push_back(std::move(builder).Finish(absl::StrCat("solve_tri ", lower, diagonal), result,
                                                {1e-4, 1e-3}));
    }
  }
  return cases;
}

}  // namespace weft
