#include "common/blas/blas_device.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/status_macros.h"
#include "common/blas/blas_backend.h"
#include "common/blas/blas_product.h"

namespace weft {
namespace {

constexpr int kMaxThreads = 1024;

Support No(const std::string& why) { return absl::UnimplementedError(why); }

Support CheckTypes(const TensorLayout& weights, const TensorLayout& columns) {
  const bool plain =
      weights.dtype == DType::kF32 || weights.dtype == DType::kF16 || weights.dtype == DType::kBF16;
  if (!plain) {
    return No(absl::StrCat("BLAS has no ", AbslView(DTypeName(weights.dtype)), " weights"));
  }
  if (columns.dtype != DType::kF32) {
    return No(absl::StrCat("BLAS takes F32 columns, not ", AbslView(DTypeName(columns.dtype))));
  }
  return absl::OkStatus();
}

Support CheckSize(DType dtype, const Extents& weights, const Extents& columns) {
  const int64_t least = dtype == DType::kF32 ? kBlasLeastColumns : kBlasLeastColumnsOfHalves;
  if (columns[1] < least) {
    return No(absl::StrCat(columns[1], " columns, BLAS is worth it from ", least, " on"));
  }
  if (weights[0] < kBlasLeastExtent || weights[1] < kBlasLeastExtent) {
    return No(absl::StrCat("a matrix of ", weights[0], " by ", weights[1],
                           ", BLAS is worth it from ", kBlasLeastExtent, " on"));
  }
  for (const int64_t extent : {weights[0], weights[1], columns[1]}) {
    if (extent > std::numeric_limits<int32_t>::max()) {
      return No(absl::StrCat("an extent of ", extent, " is too large for BLAS"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

BlasDevice::BlasDevice(CpuDevice& cpu, std::shared_ptr<BlasLibrary> library,
                       const BlasDeviceOptions& options)
    : cpu_(cpu),
      library_(std::move(library)),
      options_(options),
      description_(absl::StrCat(library_->description(), ", ", options.threads,
                                options.threads == 1 ? " thread" : " threads")) {}

absl::StatusOr<std::unique_ptr<BlasDevice>> BlasDevice::Create(CpuDevice& cpu,
                                                               std::shared_ptr<BlasLibrary> library,
                                                               const BlasDeviceOptions& options) {
  if (library == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(options.name, ": no library"));
  }
  if (options.threads < 1 || options.threads > kMaxThreads) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.name, ": ", options.threads, " threads, want 1 to ", kMaxThreads));
  }
  return std::unique_ptr<BlasDevice>(new BlasDevice(cpu, std::move(library), options));
}

DeviceCapabilities BlasDevice::capabilities() const {
  DeviceCapabilities capabilities;
  capabilities.host_memory = true;
  return capabilities;
}

Support BlasDevice::Supports(const Graph& graph, NodeId id) const {
  const Node& node = graph.node(id);
  if (node.op != Op::kMulMat) {
    return No(absl::StrCat("BLAS computes mul_mat only, not ", AbslView(OpName(node.op))));
  }
  const TensorLayout& weights = graph.layout(node.sources[0]);
  const TensorLayout& columns = graph.layout(node.sources[1]);
  RETURN_IF_ERROR(CheckTypes(weights, columns));
  RETURN_IF_ERROR(CheckSize(weights.dtype, weights.ne, columns.ne));
  if (!IsContiguous(weights) || !IsContiguous(columns) || !IsContiguous(node.layout)) {
    return No("BLAS takes packed matrices");
  }
  return absl::OkStatus();
}

Support BlasDevice::Supports(const BufferType& type) const { return cpu_.Supports(type); }

int64_t BlasDevice::WorkspaceBytes(const Graph& graph, NodeId id) const {
  if (!Supports(graph, id).ok()) return 0;
  return BlasWorkspaceBytes(graph.layout(graph.node(id).sources[0]));
}

absl::StatusOr<std::unique_ptr<Buffer>> BlasDevice::WrapHostMemory(void*, int64_t, BufferUsage) {
  return absl::UnimplementedError(absl::StrCat(name(), " has no memory of its own"));
}

absl::StatusOr<std::unique_ptr<Backend>> BlasDevice::OpenBackend(BackendOptions options) {
  return std::make_unique<BlasBackend>(*this, std::move(options));
}

}  // namespace weft
