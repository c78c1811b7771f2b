#include "coordinator/weights/weight_loader.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/checked_math.h"
#include "common/base/status_macros.h"

namespace weft {
namespace {

constexpr int64_t kChunkBytes = int64_t{8} << 20;
constexpr int64_t kPageBytes = 4096;

absl::Status Cancelled() { return absl::CancelledError("loading was cancelled"); }

// Reads one byte of every page of [data, data + bytes), so that it is in memory and mapped.
uint8_t Touch(const uint8_t* data, int64_t bytes) {
  uint8_t sum = 0;
  for (int64_t i = 0; i < bytes; i += kPageBytes) {
    sum = static_cast<uint8_t>(sum + *const_cast<const volatile uint8_t*>(data + i));
  }
  return sum;
}

// The tensors of the file that make up a weight, in order.
std::vector<const GgufTensor*> TensorsOf(const Model& model, const Weight& weight) {
  if (weight.parts.empty()) return {model.file().FindTensor(weight.name)};
  std::vector<const GgufTensor*> tensors;
  for (const std::string& part : weight.parts) tensors.push_back(model.file().FindTensor(part));
  return tensors;
}

}  // namespace

absl::StatusOr<std::unique_ptr<LoadedWeights>> LoadedWeights::Load(const Model& model,
                                                                   Device& device,
                                                                   const LoadProgress& progress) {
  std::unique_ptr<LoadedWeights> weights(new LoadedWeights());
  for (const Weight& weight : model.weights()) {
    for (const GgufTensor* tensor : TensorsOf(model, weight)) weights->bytes_ += tensor->bytes;
  }
  const DeviceCapabilities capabilities = device.capabilities();
  weights->in_place_ = capabilities.host_memory && capabilities.wraps_host_memory;
  RETURN_IF_ERROR(weights->in_place_ ? weights->MapInPlace(model, device, progress)
                                     : weights->CopyToDevice(model, device, progress));
  return weights;
}

absl::Status LoadedWeights::MapInPlace(const Model& model, Device& device,
                                       const LoadProgress& progress) {
  const GgufFile& file = model.file();
  for (int i = 0; i < file.file_count(); ++i) {
    const absl::Span<const uint8_t> bytes = file.file(i).bytes();
    // The mapping is read-only; weight buffers are never written.
    ASSIGN_OR_RETURN(
        std::unique_ptr<Buffer> buffer,
        device.WrapHostMemory(const_cast<uint8_t*>(bytes.data()),
                              static_cast<int64_t>(bytes.size()), BufferUsage::kWeights));
    buffers_.push_back(std::move(buffer));
  }
  int64_t done = 0;
  int32_t id = 0;
  for (const Weight& weight : model.weights()) {
    if (!weight.parts.empty()) {
      RETURN_IF_ERROR(CopyWeight(model, device, weight, id++, progress, done));
      continue;
    }
    const GgufTensor& tensor = *TensorsOf(model, weight).front();
    bindings_.push_back(
        {SlotKind::kWeight, id++, buffers_[tensor.file_index].get(), tensor.file_offset});
    const MappedFile& mapped = file.file(tensor.file_index);
    mapped.WillNeed(static_cast<size_t>(tensor.file_offset), static_cast<size_t>(tensor.bytes));
    for (int64_t at = 0; at < tensor.bytes; at += kChunkBytes) {
      const int64_t bytes = std::min(kChunkBytes, tensor.bytes - at);
      Touch(mapped.bytes().data() + tensor.file_offset + at, bytes);
      done += bytes;
      if (progress && !progress(done, bytes_)) return Cancelled();
    }
  }
  return absl::OkStatus();
}

absl::Status LoadedWeights::CopyToDevice(const Model& model, Device& device,
                                         const LoadProgress& progress) {
  int64_t done = 0;
  int32_t id = 0;
  for (const Weight& weight : model.weights()) {
    RETURN_IF_ERROR(CopyWeight(model, device, weight, id++, progress, done));
  }
  return absl::OkStatus();
}

absl::Status LoadedWeights::CopyWeight(const Model& model, Device& device, const Weight& weight,
                                       int32_t id, const LoadProgress& progress, int64_t& done) {
  BufferType& memory = device.buffer_type();
  const int64_t wanted = memory.TensorBytes(weight.layout);
  absl::StatusOr<std::unique_ptr<Buffer>> buffer = memory.Allocate(wanted, BufferUsage::kWeights);
  if (!buffer.ok()) {
    return absl::Status(buffer.status().code(),
                        absl::StrCat("weight '", weight.name, "' of ", wanted, " bytes on ",
                                     device.name(), ": ", buffer.status().message()));
  }
  int64_t start = 0;
  for (const GgufTensor* tensor : TensorsOf(model, weight)) {
    const absl::Span<const uint8_t> bytes = model.file().TensorBytes(*tensor);
    for (int64_t at = 0; at < tensor->bytes; at += kChunkBytes) {
      const int64_t count = std::min(kChunkBytes, tensor->bytes - at);
      RETURN_IF_ERROR((*buffer)->Set(start + at, bytes.data() + at, count));
      done += count;
      if (progress && !progress(done, bytes_)) return Cancelled();
    }
    start += tensor->bytes;
  }
  bindings_.push_back({SlotKind::kWeight, id, buffer->get(), 0});
  buffers_.push_back(*std::move(buffer));
  return absl::OkStatus();
}

}  // namespace weft
