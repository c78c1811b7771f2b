// Brings a model's weights to devices: in place where a device can use the mapped file, else copied
// into its memory.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/device/device.h"
#include "common/program/program_host.h"
#include "coordinator/models/model.h"
#include "coordinator/weights/foreign_weights.h"
#include "coordinator/weights/weight_slice.h"

namespace weft {

// The buffers that hold the weights, and where each weight lies in them.
class LoadedWeights {
 public:
  // Puts every slice on its device; on those that `foreign` (may be null) holds through it. Bytes
  // that several slices of one memory share are there once. Reads every byte once, so that a slow
  // disk shows here and not in the first token. `model` with its file and the devices outlive this.
  // Errors: RESOURCE_EXHAUSTED naming what did not fit; CANCELLED.
  static absl::StatusOr<std::unique_ptr<LoadedWeights>> Load(const Model& model,
                                                             std::vector<WeightSlice> slices,
                                                             const LoadProgress& progress,
                                                             ForeignWeights* foreign = nullptr);
  // Weight i whole on devices[device_of_weight[i]]. Errors: INVALID_ARGUMENT unless there is a
  // device for every weight; else as above.
  static absl::StatusOr<std::unique_ptr<LoadedWeights>> Load(
      const Model& model, absl::Span<Device* const> devices,
      absl::Span<const int32_t> device_of_weight, const LoadProgress& progress,
      ForeignWeights* foreign = nullptr);
  // All on one device.
  static absl::StatusOr<std::unique_ptr<LoadedWeights>> Load(const Model& model, Device& device,
                                                             const LoadProgress& progress);

  // One binding per slice, by its position.
  const std::vector<SlotBinding>& bindings() const { return bindings_; }
  // Bytes that were brought to memory, shared ones counted once per memory.
  int64_t bytes() const { return bytes_; }
  // Whether nothing was copied.
  bool in_place() const { return in_place_; }

 private:
  // How one slice gets where it belongs.
  struct Item {
    WeightSlice slice;
    std::vector<FileRun> runs;
    bool in_place = false;
    bool foreign = false;
    int32_t same_as = -1;  // the slice before it whose bytes these are; -1: they are new
  };

  LoadedWeights() = default;
  void Plan(const Model& model, std::vector<WeightSlice> slices, const ForeignWeights* foreign);
  // All that is foreign, at once.
  absl::Status LoadForeign(const Model& model, ForeignWeights& foreign,
                           const LoadProgress& progress);
  // Binds the slice where the file is mapped and reads it.
  absl::Status UseInPlace(const Model& model, int32_t id, const LoadProgress& progress);
  // Allocates the slice, fills it and binds it.
  absl::Status Copy(const Model& model, int32_t id, const LoadProgress& progress);
  // Writes the item's bytes into its buffer.
  absl::Status Fill(const Model& model, const Item& item, Buffer& buffer,
                    const LoadProgress& progress);
  // The buffer of `device` over a file of the set.
  absl::StatusOr<Buffer*> Mapping(const Model& model, Device& device, int32_t file_index);
  absl::Status Advance(int64_t bytes, const LoadProgress& progress);

  std::vector<Item> items_;  // by slice
  absl::flat_hash_map<std::pair<const Device*, int32_t>, Buffer*> mappings_;
  std::vector<std::unique_ptr<Buffer>> buffers_;
  std::vector<SlotBinding> bindings_;
  int64_t bytes_ = 0;
  int64_t done_ = 0;
  bool in_place_ = true;
};

}  // namespace weft
