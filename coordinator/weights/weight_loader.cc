#include "coordinator/weights/weight_loader.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace weft {
namespace {

constexpr int64_t kChunkBytes = int64_t{8} << 20;

int64_t TotalBytes(absl::Span<const GgufTensor* const> tensors) {
  int64_t bytes = 0;
  for (const GgufTensor* tensor : tensors) bytes += tensor->bytes;
  return bytes;
}

// "'output.weight'", with the tensor that it shares.
std::string WeightText(const Weight& weight) {
  if (weight.parts.size() != 1) return absl::StrCat("'", weight.name, "'");
  return absl::StrCat("'", weight.name, "' (tensor '", weight.parts.front(), "')");
}

}  // namespace

absl::StatusOr<std::unique_ptr<LoadedWeights>> LoadedWeights::Load(
    const Model& model, absl::Span<Device* const> devices,
    absl::Span<const int32_t> device_of_weight, const LoadProgress& progress,
    ForeignWeights* foreign) {
  std::unique_ptr<LoadedWeights> weights(new LoadedWeights());
  RETURN_IF_ERROR(weights->Plan(model, devices, device_of_weight, foreign));
  for (size_t i = 0; i < weights->items_.size(); ++i) {
    const auto id = static_cast<int32_t>(i);
    if (weights->items_[i].foreign) continue;
    RETURN_IF_ERROR(weights->items_[i].in_place ? weights->UseInPlace(model, id, progress)
                                                : weights->Copy(model, id, progress));
  }
  if (foreign != nullptr) RETURN_IF_ERROR(weights->LoadForeign(model, *foreign, progress));
  return weights;
}

absl::StatusOr<std::unique_ptr<LoadedWeights>> LoadedWeights::Load(const Model& model,
                                                                   Device& device,
                                                                   const LoadProgress& progress) {
  Device* const only = &device;
  const std::vector<int32_t> device_of_weight(model.weights().size(), 0);
  return Load(model, {&only, 1}, device_of_weight, progress);
}

absl::Status LoadedWeights::Plan(const Model& model, absl::Span<Device* const> devices,
                                 absl::Span<const int32_t> device_of_weight,
                                 const ForeignWeights* foreign) {
  if (device_of_weight.size() != model.weights().size()) {
    return absl::InvalidArgumentError(absl::StrCat("devices for ", device_of_weight.size(), " of ",
                                                   model.weights().size(), " weights"));
  }
  // Weights are the same bytes if they start with the same tensor of the file and consist of as
  // many. In the mapped file these are in memory once for all devices.
  absl::flat_hash_map<std::tuple<const BufferType*, const GgufTensor*, size_t>, int32_t> seen;
  for (size_t i = 0; i < model.weights().size(); ++i) {
    const int32_t at = device_of_weight[i];
    if (at < 0 || at >= static_cast<int32_t>(devices.size())) {
      return absl::InvalidArgumentError(absl::StrCat("weight '", model.weights()[i].name,
                                                     "' on device ", at, " of ", devices.size()));
    }
    Item item;
    item.device = devices[at];
    item.tensors = model.weight_table().TensorsOf(model.weights()[i]);
    item.foreign = foreign != nullptr && foreign->Holds(*item.device);
    const DeviceCapabilities capabilities = item.device->capabilities();
    item.in_place = !item.foreign && capabilities.host_memory && capabilities.wraps_host_memory &&
                    item.tensors.size() == 1;
    in_place_ = in_place_ && item.in_place;
    const BufferType* memory = item.in_place ? nullptr : &item.device->buffer_type();
    const auto [first, is_new] = seen.try_emplace(
        {memory, item.tensors.front(), item.tensors.size()}, static_cast<int32_t>(i));
    if (is_new) {
      bytes_ += TotalBytes(item.tensors);
    } else {
      item.same_as = first->second;
    }
    items_.push_back(std::move(item));
  }
  bindings_.resize(items_.size());
  return absl::OkStatus();
}

absl::Status LoadedWeights::LoadForeign(const Model& model, ForeignWeights& foreign,
                                        const LoadProgress& progress) {
  std::vector<ForeignWeight> wanted;
  for (size_t i = 0; i < items_.size(); ++i) {
    if (!items_[i].foreign) continue;
    wanted.push_back({static_cast<int32_t>(i), items_[i].device, items_[i].tensors});
  }
  if (wanted.empty()) return absl::OkStatus();
  const LoadProgress on_top = [&](int64_t done, int64_t) {
    return !progress || progress(done_ + done, bytes_);
  };
  ASSIGN_OR_RETURN(ForeignResult loaded, foreign.Load(model, wanted, on_top));
  for (const SlotBinding& binding : loaded.bindings) bindings_[binding.id] = binding;
  for (std::unique_ptr<Buffer>& buffer : loaded.buffers) buffers_.push_back(std::move(buffer));
  return absl::OkStatus();
}

absl::Status LoadedWeights::Advance(int64_t bytes, const LoadProgress& progress) {
  done_ += bytes;
  if (progress && !progress(done_, bytes_)) return absl::CancelledError("loading was cancelled");
  return absl::OkStatus();
}

absl::StatusOr<Buffer*> LoadedWeights::Mapping(const Model& model, Device& device,
                                               int32_t file_index) {
  Buffer*& mapping = mappings_[{&device, file_index}];
  if (mapping != nullptr) return mapping;
  const absl::Span<const uint8_t> bytes = model.file().file(file_index).bytes();
  // The mapping is read-only; weight buffers are never written.
  ASSIGN_OR_RETURN(
      std::unique_ptr<Buffer> buffer,
      device.WrapHostMemory(const_cast<uint8_t*>(bytes.data()), static_cast<int64_t>(bytes.size()),
                            BufferUsage::kWeights));
  mapping = buffer.get();
  buffers_.push_back(std::move(buffer));
  return mapping;
}

absl::Status LoadedWeights::UseInPlace(const Model& model, int32_t id,
                                       const LoadProgress& progress) {
  const Item& item = items_[id];
  const GgufTensor& tensor = *item.tensors.front();
  ASSIGN_OR_RETURN(Buffer* const buffer, Mapping(model, *item.device, tensor.file_index));
  bindings_[id] = {SlotKind::kWeight, id, buffer, tensor.file_offset};
  if (item.same_as >= 0) return absl::OkStatus();
  const MappedFile& mapped = model.file().file(tensor.file_index);
  return mapped.Touch(static_cast<size_t>(tensor.file_offset), static_cast<size_t>(tensor.bytes),
                      [&](int64_t bytes) { return Advance(bytes, progress); });
}

absl::Status LoadedWeights::Copy(const Model& model, int32_t id, const LoadProgress& progress) {
  const Item& item = items_[id];
  if (item.same_as >= 0) {
    bindings_[id] = bindings_[item.same_as];
    bindings_[id].id = id;
    return absl::OkStatus();
  }
  const Weight& weight = model.weights()[id];
  BufferType& memory = item.device->buffer_type();
  const int64_t wanted = memory.TensorBytes(weight.layout);
  absl::StatusOr<std::unique_ptr<Buffer>> buffer = memory.Allocate(wanted, BufferUsage::kWeights);
  if (!buffer.ok()) {
    return absl::Status(buffer.status().code(),
                        absl::StrCat("weight ", WeightText(weight), " of ", wanted, " bytes on ",
                                     item.device->name(), ": ", buffer.status().message()));
  }
  int64_t start = 0;
  for (const GgufTensor* tensor : item.tensors) {
    const absl::Span<const uint8_t> bytes = model.file().TensorBytes(*tensor);
    for (int64_t at = 0; at < tensor->bytes; at += kChunkBytes) {
      const int64_t count = std::min(kChunkBytes, tensor->bytes - at);
      RETURN_IF_ERROR((*buffer)->Set(start + at, bytes.data() + at, count));
      RETURN_IF_ERROR(Advance(count, progress));
    }
    start += tensor->bytes;
  }
  bindings_[id] = {SlotKind::kWeight, id, buffer->get(), 0};
  buffers_.push_back(*std::move(buffer));
  return absl::OkStatus();
}

}  // namespace weft
