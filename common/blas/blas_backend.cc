#include "common/blas/blas_backend.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/blas/blas_product.h"
#include "common/device/slice_check.h"

namespace weft {
namespace {

class BlasExecutable final : public Executable {
 public:
  explicit BlasExecutable(std::vector<BlasOperands> products) : products_(std::move(products)) {}
  const std::vector<BlasOperands>& products() const { return products_; }

 private:
  std::vector<BlasOperands> products_;
};

// The address of a tensor whose place is checked.
// Errors: INVALID_ARGUMENT where the buffer's own address is less aligned than its elements.
absl::StatusOr<uint8_t*> AddressOf(const GraphSlice& slice, NodeId id, NodeId user) {
  const TensorPlace& place = slice.places[static_cast<size_t>(Index(id))];
  uint8_t* address = static_cast<uint8_t*>(place.buffer->host_data()) + place.offset;
  const int32_t unit = GetDTypeInfo(slice.graph->layout(id).dtype).block_bytes;
  if (reinterpret_cast<uintptr_t>(address) % static_cast<uintptr_t>(unit) == 0) return address;
  return absl::InvalidArgumentError(absl::StrCat(NodeText(*slice.graph, user), ": tensor ",
                                                 Index(id), " lies at a misaligned address"));
}

absl::StatusOr<BlasOperands> PrepareProduct(const GraphSlice& slice, NodeId id) {
  const Node& node = slice.graph->node(id);
  BlasOperands product;
  product.a_layout = slice.graph->layout(node.sources[0]);
  product.b_layout = slice.graph->layout(node.sources[1]);
  ASSIGN_OR_RETURN(product.a, AddressOf(slice, node.sources[0], id));
  ASSIGN_OR_RETURN(const uint8_t* columns, AddressOf(slice, node.sources[1], id));
  ASSIGN_OR_RETURN(uint8_t * result, AddressOf(slice, id, id));
  product.b = reinterpret_cast<const float*>(columns);
  product.c = reinterpret_cast<float*>(result);
  return product;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Executable>> BlasBackend::Prepare(const GraphSlice& slice) {
  RETURN_IF_ERROR(CheckSlice(device_, slice));
  std::vector<BlasOperands> products;
  int64_t workspace_bytes = 0;
  for (const NodeId id : slice.nodes) {
    if (!slice.graph->Executes(id)) continue;
    ASSIGN_OR_RETURN(BlasOperands product, PrepareProduct(slice, id));
    products.push_back(product);
    workspace_bytes = std::max(workspace_bytes, device_.WorkspaceBytes(*slice.graph, id));
  }
  RETURN_IF_ERROR(GrowWorkspace(workspace_bytes));
  return std::make_unique<BlasExecutable>(std::move(products));
}

absl::Status BlasBackend::Launch(Executable& executable) {
  // The interface says that it comes from this backend's Prepare.
  const auto& prepared = static_cast<const BlasExecutable&>(executable);
  const BlasLaunch launch{*device_.library_, device_.cpu_.kernels(), device_.threads(),
                          reinterpret_cast<float*>(workspace()), options().progress};
  for (const BlasOperands& product : prepared.products()) RunBlasProduct(product, launch);
  return absl::OkStatus();
}

}  // namespace weft
