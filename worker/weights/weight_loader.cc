#include "worker/weights/weight_loader.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "common/base/processors.h"
#include "common/base/status_macros.h"
#include "common/base/task_queue.h"

namespace weft {
namespace {

constexpr int64_t kCopyBytes = int64_t{8} << 20;
constexpr int kDigestThreads = 4;

}  // namespace

// One call of Load.
class WeightLoader::Run {
 public:
  Run(WeightLoader& loader, const LoadManifest& manifest, bool ignore_files,
      const WeightProgress& progress)
      : loader_(loader),
        manifest_(manifest),
        progress_(progress),
        sources_(manifest, ignore_files, loader.files_, loader.cache_) {}

  absl::StatusOr<LoadResult> Do() {
    result_.remark = sources_.remark();
    for (const WeightEntry& item : manifest_.weights) total_ += ContentBytes(item);
    for (const WeightEntry& item : manifest_.weights) RETURN_IF_ERROR(LoadItem(item));
    loader_.check_.Add(std::move(checks_));
    return std::move(result_);
  }

 private:
  absl::Status LoadItem(const WeightEntry& item) {
    if (!sources_.FilesAreHere(item)) return FetchOrOpen(item);
    AddCheck(item);
    const DeviceCapabilities capabilities = loader_.devices_[item.device]->capabilities();
    const bool in_place = capabilities.host_memory && capabilities.wraps_host_memory &&
                          item.slices.size() == 1 && item.bytes == item.slices[0].bytes;
    return in_place ? UseInPlace(item) : CopyFromFiles(item);
  }

  // What the coordinator says of the content goes before what lies beside this machine's file.
  void AddCheck(const WeightEntry& item) {
    if (item.slices.size() != 1) return;
    const FileSlice& slice = item.slices[0];
    const std::shared_ptr<const ModelFiles::File>& file = sources_.file(slice.file);
    std::vector<Sha256Digest> digests = item.digests;
    if (digests.empty()) {
      const auto beside = file->DigestsOf(slice.offset, slice.bytes);
      digests.assign(beside.begin(), beside.end());
    }
    if (digests.empty()) return;
    checks_.push_back({file, slice.offset, slice.bytes, std::move(digests), item.name});
  }

  // Binds the bytes where the file is mapped, and reads them once.
  absl::Status UseInPlace(const WeightEntry& item) {
    const FileSlice& slice = item.slices[0];
    int64_t& handle = mappings_[{item.device, slice.file}];
    const std::shared_ptr<const ModelFiles::File>& file = sources_.file(slice.file);
    const MappedFile& mapped = *file->mapped;
    if (handle == 0) {
      // The mapping is read-only; weight buffers are never written.
      ASSIGN_OR_RETURN(std::unique_ptr<Buffer> buffer,
                       loader_.devices_[item.device]->WrapHostMemory(
                           const_cast<uint8_t*>(mapped.bytes().data()),
                           static_cast<int64_t>(mapped.bytes().size()), BufferUsage::kWeights));
      ASSIGN_OR_RETURN(handle, loader_.buffers_.Add({file, std::move(buffer), item.device, false}));
    }
    RETURN_IF_ERROR(mapped.Touch(static_cast<size_t>(slice.offset),
                                 static_cast<size_t>(slice.bytes),
                                 [this](int64_t bytes) { return Advance(bytes); }));
    result_.items.push_back({item.weight, handle, slice.offset, WeightOrigin::kFile, 0});
    return absl::OkStatus();
  }

  absl::StatusOr<std::shared_ptr<Buffer>> Allocate(const WeightEntry& item, WeightOrigin origin) {
    Device& device = *loader_.devices_[item.device];
    absl::StatusOr<std::unique_ptr<Buffer>> made =
        device.buffer_type().Allocate(item.bytes, BufferUsage::kWeights);
    if (!made.ok()) {
      return absl::Status(made.status().code(),
                          absl::StrCat("weight '", item.name, "' of ", item.bytes, " bytes on ",
                                       device.name(), ": ", made.status().message()));
    }
    std::shared_ptr<Buffer> buffer = *std::move(made);
    ASSIGN_OR_RETURN(const int64_t handle,
                     loader_.buffers_.Add({nullptr, buffer, item.device, true}));
    result_.items.push_back({item.weight, handle, 0, origin, 0});
    return buffer;
  }

  absl::Status CopyFromFiles(const WeightEntry& item) {
    ASSIGN_OR_RETURN(const std::shared_ptr<Buffer> buffer, Allocate(item, WeightOrigin::kFile));
    ASSIGN_OR_RETURN(const WeightBytes bytes, sources_.Find(item));
    int64_t start = 0;
    for (const absl::Span<const uint8_t> part : bytes.parts) {
      const auto size = static_cast<int64_t>(part.size());
      for (int64_t at = 0; at < size; at += kCopyBytes) {
        const int64_t count = std::min(kCopyBytes, size - at);
        RETURN_IF_ERROR(buffer->Set(start + at, part.data() + at, count));
        RETURN_IF_ERROR(Advance(count));
      }
      start += size;
    }
    return absl::OkStatus();
  }

  absl::Status FetchOrOpen(const WeightEntry& item) {
    ASSIGN_OR_RETURN(const std::shared_ptr<Buffer> buffer, Allocate(item, WeightOrigin::kStream));
    LoadedItem& loaded = result_.items.back();
    const WeightKey key = KeyOf(manifest_, item);
    if (ReadCache(key, *buffer)) {
      loaded.origin = WeightOrigin::kCache;
      return Advance(key.bytes);
    }
    ASSIGN_OR_RETURN(loaded.here,
                     loader_.open_.Add(item.weight, {buffer, loader_.devices_[item.device]->name(),
                                                     item.name, key}));
    if (loaded.here == key.bytes) loaded.origin = WeightOrigin::kCache;
    return Advance(loaded.here);
  }

  // Whether the cache had it, undamaged. What the buffer got otherwise is void.
  bool ReadCache(const WeightKey& key, Buffer& buffer) {
    if (loader_.cache_ == nullptr) return false;
    const auto entry = loader_.cache_->Find(key);
    if (!entry.ok()) return false;
    if (!queue_.has_value()) {
      queue_.emplace(std::min(kDigestThreads, AvailableProcessors()), kDigestThreads);
    }
    std::atomic<bool> sound = true;
    for (size_t i = 0; i < (*entry)->digests().size(); ++i) {
      queue_->Add([&, i] {
        const size_t at = i * kWeightPieceBytes;
        const auto piece = (*entry)->content().subspan(at, kWeightPieceBytes);
        if (Sha256::Of(piece) != (*entry)->digests()[i]) sound = false;
        if (!sound) return;
        MutexLock lock(buffer_mutex_);
        const auto offset = static_cast<int64_t>(at);
        if (!buffer.Set(offset, piece.data(), static_cast<int64_t>(piece.size())).ok()) {
          sound = false;
        }
      });
    }
    queue_->AwaitAll();
    if (!sound) loader_.cache_->Remove(**entry);
    return sound;
  }

  absl::Status Advance(int64_t bytes) {
    done_ += bytes;
    if (progress_ && !progress_(done_, total_))
      return absl::CancelledError("loading was cancelled");
    return absl::OkStatus();
  }

  WeightLoader& loader_;
  const LoadManifest& manifest_;
  const WeightProgress& progress_;
  const WeightSources sources_;
  absl::flat_hash_map<std::pair<int32_t, int32_t>, int64_t>
      mappings_;  // handle, by device and file
  std::vector<FileCheckItem> checks_;
  LoadResult result_;
  int64_t done_ = 0;
  int64_t total_ = 0;
  Mutex buffer_mutex_;
  std::optional<TaskQueue> queue_;  // the first to go
};

absl::StatusOr<LoadResult> WeightLoader::Load(const LoadManifest& manifest, bool ignore_files,
                                              const WeightProgress& progress) {
  return Run(*this, manifest, ignore_files, progress).Do();
}

}  // namespace weft
