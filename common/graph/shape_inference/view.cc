// Shape rules of the ops that share memory with their source.
#include "absl/strings/str_cat.h"
#include "common/base/checked_math.h"
#include "common/base/status_macros.h"
#include "common/graph/shape_inference/rules.h"

namespace weft::infer {

Result Leaf(const OpAttributes&, Sources) { return Bad("a leaf has no rule"); }

Result View(const OpAttributes& attributes, Sources sources) {
  const auto& view = std::get<ViewAttributes>(attributes);
  const TensorLayout& source = sources[0];
  const int64_t block = GetDTypeInfo(source.dtype).block_bytes;
  // The packed layout of these extents checks their signs, block multiple and product.
  RETURN_IF_ERROR(PackedLayout(source.dtype, view.ne).status());
  TensorLayout result{source.dtype, view.ne, view.nb};
  if (view.nb[0] != block) return Bad("a view has contiguous rows");
  for (const int64_t stride : view.nb) {
    if (stride < 0 || stride % block != 0) return Bad("stride is not a multiple of the block");
  }
  if (view.offset < 0 || view.offset % block != 0) {
    return Bad(absl::StrCat("offset ", view.offset, " is not a multiple of the block"));
  }
  const std::optional<int64_t> extent = ByteExtent(result);
  const std::optional<int64_t> end = extent ? CheckedAdd(view.offset, *extent) : std::nullopt;
  const std::optional<int64_t> available = ByteExtent(source);
  if (!end || !available || *end > *available) {
    return Bad(absl::StrCat("view of ", ExtentsText(view.ne), " at byte ", view.offset,
                            " leaves its source ", LayoutText(source)));
  }
  return result;
}

Result Reshape(const OpAttributes& attributes, Sources sources) {
  const auto& reshape = std::get<ReshapeAttributes>(attributes);
  if (!IsContiguous(sources[0])) return Bad("source is not contiguous");
  ASSIGN_OR_RETURN(const TensorLayout result, PackedLayout(sources[0].dtype, reshape.ne));
  if (ElementCount(result) != ElementCount(sources[0])) {
    return Bad(absl::StrCat("cannot reshape ", ExtentsText(sources[0].ne), " to ",
                            ExtentsText(reshape.ne)));
  }
  return result;
}

Result Permute(const OpAttributes& attributes, Sources sources) {
  const auto& axes = std::get<PermuteAttributes>(attributes).axes;
  TensorLayout result{sources[0].dtype, {}, {}};
  std::array<bool, 4> used = {};
  for (int i = 0; i < 4; ++i) {
    if (axes[i] < 0 || axes[i] > 3 || used[axes[i]]) return Bad("axes are not a permutation");
    used[axes[i]] = true;
    result.ne[axes[i]] = sources[0].ne[i];
    result.nb[axes[i]] = sources[0].nb[i];
  }
  if (axes[0] != 0 && GetDTypeInfo(sources[0].dtype).block_elements != 1) {
    return Bad("rows of a block type cannot be permuted");
  }
  return result;
}

Result Transpose(const OpAttributes&, Sources sources) {
  return Permute(PermuteAttributes{{1, 0, 2, 3}}, sources);
}

}  // namespace weft::infer
