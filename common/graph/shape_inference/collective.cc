// Shape rules of what ranks do together.
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/checked_math.h"
#include "common/base/status_macros.h"
#include "common/graph/shape_inference/rules.h"

namespace weft::infer {
namespace {

absl::Status NeedKey(const CollectiveKey& key) {
  if (key.id < 0 || key.id >= kMaxCollectives) {
    return Bad(absl::StrCat("collective ", key.id, ", ids lie below ", kMaxCollectives));
  }
  if (key.communicator < 0) return Bad(absl::StrCat("communicator ", key.communicator));
  return absl::OkStatus();
}

// Only what is added may lose precision on the way.
absl::Status NeedWire(DType wire, DType dtype) {
  const bool lossy = wire == DType::kBF16 || wire == DType::kQ8_0;
  if (wire == dtype || (dtype == DType::kF32 && lossy)) return absl::OkStatus();
  const bool known = static_cast<int>(wire) < kDTypeCount;
  return Bad(absl::StrCat(AbslView(DTypeName(dtype)), " cannot travel as ",
                          known ? AbslView(DTypeName(wire)) : "an unknown type"));
}

}  // namespace

Result AllReduce(const OpAttributes& attributes, Sources sources) {
  const auto& reduce = std::get<AllReduceAttributes>(attributes);
  RETURN_IF_ERROR(NeedKey(reduce.key));
  RETURN_IF_ERROR(NeedWire(reduce.wire, DType::kF32));
  RETURN_IF_ERROR(NeedDType(sources, 0, DType::kF32));
  if (!IsContiguous(sources[0])) return Bad("the source is not packed");
  return PackedLayout(DType::kF32, sources[0].ne);
}

Result AllGather(const OpAttributes& attributes, Sources sources) {
  const auto& gather = std::get<AllGatherAttributes>(attributes);
  RETURN_IF_ERROR(NeedKey(gather.key));
  if (gather.dtype != DType::kF32 && gather.dtype != DType::kI32) {
    return Bad("only F32 and I32 tensors are gathered");
  }
  RETURN_IF_ERROR(NeedWire(gather.wire, gather.dtype));
  if (gather.axis < 0 || gather.axis > 3) return Bad(absl::StrCat("axis ", gather.axis));
  if (gather.counts.empty() || gather.counts.size() > size_t{kMaxRanks}) {
    return Bad(absl::StrCat("parts of ", gather.counts.size(), " ranks"));
  }
  ASSIGN_OR_RETURN(const TensorLayout result, PackedLayout(gather.dtype, gather.ne));
  int64_t sum = 0;
  bool found = sources.empty();
  Extents part = gather.ne;
  for (const int64_t count : gather.counts) {
    const std::optional<int64_t> next = CheckedAdd(sum, count);
    if (count < 0 || !next) return Bad(absl::StrCat("a part of ", count));
    sum = *next;
    part[gather.axis] = count;
    found = found || sources[0].ne == part;
  }
  if (sum != gather.ne[gather.axis]) {
    return Bad(absl::StrCat("parts of ", sum, " together, want ", gather.ne[gather.axis]));
  }
  if (sources.empty()) return result;
  RETURN_IF_ERROR(NeedDType(sources, 0, gather.dtype));
  if (!IsContiguous(sources[0])) return Bad("the source is not packed");
  if (!found) return Bad(absl::StrCat("the source ", ExtentsText(sources[0].ne), " is no part"));
  return result;
}

}  // namespace weft::infer
