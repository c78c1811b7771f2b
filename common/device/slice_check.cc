#include "common/device/slice_check.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace weft {
namespace {

absl::Status CheckPlace(const Device& device, const GraphSlice& slice, NodeId id, NodeId user) {
  const auto bad = [&](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat(
        device.name(), ": ", NodeText(*slice.graph, user), ": tensor ", Index(id), ": ", why));
  };
  const TensorPlace& place = slice.places[static_cast<size_t>(Index(id))];
  if (place.buffer == nullptr) return bad("has no memory");
  const TensorLayout& layout = slice.graph->layout(id);
  if (const Support support = device.Supports(place.buffer->type()); !support.ok()) {
    return bad(support.message());
  }
  const int64_t unit = GetDTypeInfo(layout.dtype).block_elements == 1
                           ? GetDTypeInfo(layout.dtype).block_bytes
                           : 2;  // block types start with halves or bytes
  if (place.offset % unit != 0) return bad(absl::StrCat("misaligned offset ", place.offset));
  const std::optional<int64_t> extent = ByteExtent(layout);
  if (!extent) return bad("its size overflows");
  const absl::Status range = CheckRange(*place.buffer, place.offset, *extent);
  return range.ok() ? range : bad(range.message());
}

}  // namespace

absl::Status CheckSlice(const Device& device, const GraphSlice& slice) {
  const Graph& graph = *slice.graph;
  if (static_cast<int64_t>(slice.places.size()) != graph.size()) {
    return absl::InvalidArgumentError(absl::StrCat(device.name(), ": ", slice.places.size(),
                                                   " places for ", graph.size(), " nodes"));
  }
  for (const NodeId id : slice.nodes) {
    if (Index(id) < 0 || Index(id) >= graph.size()) {
      return absl::InvalidArgumentError(absl::StrCat(device.name(), ": no node ", Index(id)));
    }
    if (!graph.Executes(id)) continue;
    if (const Support support = device.Supports(graph, id); !support.ok()) {
      return absl::UnimplementedError(
          absl::StrCat(device.name(), ": ", NodeText(graph, id), ": ", support.message()));
    }
    RETURN_IF_ERROR(CheckPlace(device, slice, id, id));
    for (const NodeId source : graph.node(id).sources) {
      RETURN_IF_ERROR(CheckPlace(device, slice, source, id));
    }
  }
  return absl::OkStatus();
}

}  // namespace weft
