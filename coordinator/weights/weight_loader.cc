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

// "'output.weight'", with the tensor that it shares.
std::string WeightText(const Weight& weight) {
  if (weight.parts.size() != 1) return absl::StrCat("'", weight.name, "'");
  return absl::StrCat("'", weight.name, "' (tensor '", weight.parts.front(), "')");
}

}  // namespace

absl::StatusOr<std::unique_ptr<LoadedWeights>> LoadedWeights::Load(const Model& model,
                                                                   std::vector<WeightSlice> slices,
                                                                   const LoadProgress& progress,
                                                                   ForeignWeights* foreign) {
  std::unique_ptr<LoadedWeights> weights(new LoadedWeights());
  weights->Plan(model, std::move(slices), foreign);
  for (size_t i = 0; i < weights->items_.size(); ++i) {
    const auto id = static_cast<int32_t>(i);
    if (weights->items_[i].foreign) continue;
    RETURN_IF_ERROR(weights->items_[i].in_place ? weights->UseInPlace(model, id, progress)
                                                : weights->Copy(model, id, progress));
  }
  if (foreign != nullptr) RETURN_IF_ERROR(weights->LoadForeign(model, *foreign, progress));
  return weights;
}

absl::StatusOr<std::unique_ptr<LoadedWeights>> LoadedWeights::Load(
    const Model& model, absl::Span<Device* const> devices,
    absl::Span<const int32_t> device_of_weight, const LoadProgress& progress,
    ForeignWeights* foreign) {
  if (device_of_weight.size() != model.weights().size()) {
    return absl::InvalidArgumentError(absl::StrCat("devices for ", device_of_weight.size(), " of ",
                                                   model.weights().size(), " weights"));
  }
  std::vector<WeightSlice> slices;
  for (size_t i = 0; i < model.weights().size(); ++i) {
    const Weight& weight = model.weights()[i];
    const int32_t at = device_of_weight[i];
    if (at < 0 || at >= static_cast<int32_t>(devices.size())) {
      return absl::InvalidArgumentError(
          absl::StrCat("weight '", weight.name, "' on device ", at, " of ", devices.size()));
    }
    slices.push_back(WholeWeight(static_cast<int32_t>(i), devices[at], weight.layout));
  }
  return Load(model, std::move(slices), progress, foreign);
}

absl::StatusOr<std::unique_ptr<LoadedWeights>> LoadedWeights::Load(const Model& model,
                                                                   Device& device,
                                                                   const LoadProgress& progress) {
  Device* const only = &device;
  const std::vector<int32_t> device_of_weight(model.weights().size(), 0);
  return Load(model, {&only, 1}, device_of_weight, progress);
}

void LoadedWeights::Plan(const Model& model, std::vector<WeightSlice> slices,
                         const ForeignWeights* foreign) {
  // Slices are the same bytes if they are the same runs of weights that start with the same tensor
  // of the file and consist of as many. In the mapped file these are in memory once for all
  // devices.
  absl::flat_hash_map<
      std::tuple<const BufferType*, const GgufTensor*, size_t, std::vector<ByteRun>>, int32_t>
      seen;
  for (WeightSlice& slice : slices) {
    const std::vector<const GgufTensor*> tensors =
        model.weight_table().TensorsOf(model.weights()[slice.weight]);
    Item item;
    item.runs = FileRuns(tensors, slice.runs);
    item.foreign = foreign != nullptr && foreign->Holds(*slice.device);
    const DeviceCapabilities capabilities = slice.device->capabilities();
    item.in_place = !item.foreign && capabilities.host_memory && capabilities.wraps_host_memory &&
                    item.runs.size() == 1 && item.runs[0].run.count == 1;
    in_place_ = in_place_ && item.in_place;
    const BufferType* memory = item.in_place ? nullptr : &slice.device->buffer_type();
    const auto [first, is_new] = seen.try_emplace(
        {memory, tensors.front(), tensors.size(), slice.runs}, static_cast<int32_t>(items_.size()));
    if (is_new) {
      bytes_ += TotalBytes(slice.runs);
    } else {
      item.same_as = first->second;
    }
    item.slice = std::move(slice);
    items_.push_back(std::move(item));
  }
  bindings_.resize(items_.size());
}

absl::Status LoadedWeights::LoadForeign(const Model& model, ForeignWeights& foreign,
                                        const LoadProgress& progress) {
  std::vector<ForeignWeight> wanted;
  for (size_t i = 0; i < items_.size(); ++i) {
    if (!items_[i].foreign) continue;
    const Item& item = items_[i];
    wanted.push_back({static_cast<int32_t>(i), item.slice.weight, item.slice.device,
                      item.slice.layout, item.runs});
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
  const FileRun& from = item.runs.front();
  ASSIGN_OR_RETURN(Buffer* const buffer, Mapping(model, *item.slice.device, from.file));
  bindings_[id] = {SlotKind::kWeight, id, buffer, from.run.offset};
  if (item.same_as >= 0) return absl::OkStatus();
  const MappedFile& mapped = model.file().file(from.file);
  return mapped.Touch(static_cast<size_t>(from.run.offset), static_cast<size_t>(from.run.bytes),
                      [&](int64_t bytes) { return Advance(bytes, progress); });
}

absl::Status LoadedWeights::Copy(const Model& model, int32_t id, const LoadProgress& progress) {
  const Item& item = items_[id];
  if (item.same_as >= 0) {
    bindings_[id] = bindings_[item.same_as];
    bindings_[id].id = id;
    return absl::OkStatus();
  }
  const WeightSlice& slice = item.slice;
  BufferType& memory = slice.device->buffer_type();
  const int64_t wanted = memory.TensorBytes(slice.layout);
  absl::StatusOr<std::unique_ptr<Buffer>> buffer = memory.Allocate(wanted, BufferUsage::kWeights);
  if (!buffer.ok()) {
    return absl::Status(
        buffer.status().code(),
        absl::StrCat("weight ", WeightText(model.weights()[slice.weight]), " of ", wanted,
                     " bytes on ", slice.device->name(), ": ", buffer.status().message()));
  }
  RETURN_IF_ERROR(Fill(model, item, **buffer, progress));
  bindings_[id] = {SlotKind::kWeight, id, buffer->get(), 0};
  buffers_.push_back(*std::move(buffer));
  return absl::OkStatus();
}

absl::Status LoadedWeights::Fill(const Model& model, const Item& item, Buffer& buffer,
                                 const LoadProgress& progress) {
  int64_t start = 0;
  std::vector<uint8_t> gathered;  // short pieces, written together
  const auto write = [&](const uint8_t* data, int64_t bytes) -> absl::Status {
    RETURN_IF_ERROR(buffer.Set(start, data, bytes));
    start += bytes;
    return Advance(bytes, progress);
  };
  const auto flush = [&]() -> absl::Status {
    if (gathered.empty()) return absl::OkStatus();
    const absl::Status status = write(gathered.data(), static_cast<int64_t>(gathered.size()));
    gathered.clear();
    return status;
  };
  for (const auto& [file, run] : item.runs) {
    const uint8_t* const bytes = model.file().file(file).bytes().data();
    for (int64_t piece = 0; piece < run.count; ++piece) {
      const uint8_t* const from = bytes + run.offset + piece * run.stride;
      if (run.count > 1 && run.bytes < kChunkBytes) {
        gathered.insert(gathered.end(), from, from + run.bytes);
        if (static_cast<int64_t>(gathered.size()) >= kChunkBytes) RETURN_IF_ERROR(flush());
        continue;
      }
      RETURN_IF_ERROR(flush());
      for (int64_t at = 0; at < run.bytes; at += kChunkBytes) {
        RETURN_IF_ERROR(write(from + at, std::min(kChunkBytes, run.bytes - at)));
      }
    }
  }
  return flush();
}

}  // namespace weft
