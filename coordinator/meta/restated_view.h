// A view says where its elements are in bytes of its source. Where a rank's copy of that source has
// other strides, as after a gather that leaves no gaps, the same elements are elsewhere.
#pragma once

#include <optional>

#include "common/graph/op_attributes.h"
#include "common/tensor/tensor_layout.h"

namespace weft::split {

// The view of `to` that shows those elements which `view` shows of `from`. Both have the same
// extents and type. Nothing where the view's steps are not steps along dimensions of `from`.
std::optional<ViewAttributes> RestatedView(const ViewAttributes& view, const TensorLayout& from,
                                           const TensorLayout& to);

}  // namespace weft::split
