#include "worker/weights/weight_loader.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace weft {
namespace {

constexpr int64_t kPieceBytes = int64_t{8} << 20;
constexpr int64_t kPageBytes = 4096;

// Reads one byte of every page, so that a slow disk shows now and not in the first token.
uint8_t Touch(absl::Span<const uint8_t> data) {
  uint8_t sum = 0;
  for (size_t i = 0; i < data.size(); i += kPageBytes) {
    sum = static_cast<uint8_t>(sum + *const_cast<const volatile uint8_t*>(data.data() + i));
  }
  return sum;
}

int64_t ContentBytes(const WeightEntry& item) {
  int64_t bytes = 0;
  for (const FileSlice& slice : item.slices) bytes += slice.bytes;
  return bytes;
}

// What is asked for: the files' identities and the slices.
Sha256Digest CacheKey(const LoadManifest& manifest, const WeightEntry& item) {
  Sha256 digest;
  for (const FileSlice& slice : item.slices) {
    digest.Update(manifest.files[slice.file].identity.bytes);
    digest.UpdateInt(slice.offset);
    digest.UpdateInt(slice.bytes);
  }
  return digest.Finish();
}

}  // namespace

// One call of Load.
class WeightLoader::Run {
 public:
  Run(WeightLoader& loader, const LoadManifest& manifest, bool ignore_files,
      const WeightProgress& progress)
      : loader_(loader), manifest_(manifest), ignore_files_(ignore_files), progress_(progress) {}

  absl::StatusOr<LoadResult> Do() {
    OpenFiles();
    for (const WeightEntry& item : manifest_.weights) total_ += ContentBytes(item);
    for (const WeightEntry& item : manifest_.weights) RETURN_IF_ERROR(LoadItem(item));
    return std::move(result_);
  }

 private:
  void OpenFiles() {
    files_.resize(manifest_.files.size());
    if (ignore_files_) return;
    for (size_t i = 0; i < files_.size(); ++i) {
      auto file = loader_.files_.Open(manifest_.files[i]);
      if (file.ok()) {
        files_[i] = *std::move(file);
      } else if (result_.remark.empty()) {
        result_.remark = std::string(file.status().message());
      }
    }
  }

  bool FilesAreHere(const WeightEntry& item) const {
    return std::all_of(item.slices.begin(), item.slices.end(),
                       [this](const FileSlice& slice) { return files_[slice.file] != nullptr; });
  }

  absl::Status LoadItem(const WeightEntry& item) {
    const DeviceCapabilities capabilities = loader_.devices_[item.device]->capabilities();
    if (FilesAreHere(item)) {
      if (capabilities.host_memory && capabilities.wraps_host_memory && item.slices.size() == 1 &&
          item.bytes == item.slices[0].bytes) {
        return UseInPlace(item);
      }
      return CopyFromFiles(item);
    }
    return FetchOrOpen(item);
  }

  // Binds the bytes where the file is mapped, and reads them once.
  absl::Status UseInPlace(const WeightEntry& item) {
    const FileSlice& slice = item.slices[0];
    int64_t& handle = mappings_[{item.device, slice.file}];
    const std::shared_ptr<const MappedFile>& file = files_[slice.file];
    if (handle == 0) {
      // The mapping is read-only; weight buffers are never written.
      ASSIGN_OR_RETURN(std::unique_ptr<Buffer> buffer,
                       loader_.devices_[item.device]->WrapHostMemory(
                           const_cast<uint8_t*>(file->bytes().data()),
                           static_cast<int64_t>(file->bytes().size()), BufferUsage::kWeights));
      ASSIGN_OR_RETURN(handle, loader_.buffers_.Add({file, std::move(buffer), item.device, false}));
    }
    file->WillNeed(static_cast<size_t>(slice.offset), static_cast<size_t>(slice.bytes));
    for (int64_t at = 0; at < slice.bytes; at += kPieceBytes) {
      const int64_t bytes = std::min(kPieceBytes, slice.bytes - at);
      Touch(file->bytes().subspan(static_cast<size_t>(slice.offset + at),
                                  static_cast<size_t>(bytes)));
      RETURN_IF_ERROR(Advance(bytes));
    }
    result_.items.push_back({item.weight, handle, slice.offset, WeightOrigin::kFile});
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
    result_.items.push_back({item.weight, handle, 0, origin});
    return buffer;
  }

  absl::Status CopyFromFiles(const WeightEntry& item) {
    ASSIGN_OR_RETURN(const std::shared_ptr<Buffer> buffer, Allocate(item, WeightOrigin::kFile));
    int64_t start = 0;
    for (const FileSlice& slice : item.slices) {
      const uint8_t* const data = files_[slice.file]->bytes().data() + slice.offset;
      for (int64_t at = 0; at < slice.bytes; at += kPieceBytes) {
        const int64_t bytes = std::min(kPieceBytes, slice.bytes - at);
        RETURN_IF_ERROR(buffer->Set(start + at, data + at, bytes));
        RETURN_IF_ERROR(Advance(bytes));
      }
      start += slice.bytes;
    }
    return absl::OkStatus();
  }

  absl::Status FetchOrOpen(const WeightEntry& item) {
    const int64_t bytes = ContentBytes(item);
    ASSIGN_OR_RETURN(const std::shared_ptr<Buffer> buffer, Allocate(item, WeightOrigin::kStream));
    auto open = std::make_unique<OpenWeight>();
    open->buffer = buffer;
    open->name = item.name;
    open->bytes = bytes;
    if (loader_.cache_ != nullptr) {
      open->key = CacheKey(manifest_, item);
      const auto sink = [&](int64_t offset, absl::Span<const uint8_t> data) {
        return buffer->Set(offset, data.data(), static_cast<int64_t>(data.size()));
      };
      const absl::Status cached = loader_.cache_->Read(open->key, bytes, sink);
      if (cached.ok()) {
        result_.items.back().origin = WeightOrigin::kCache;
        return Advance(bytes);
      }
      // A cache that cannot be written is no reason not to load.
      auto writer = loader_.cache_->Start(open->key, bytes);
      if (writer.ok()) open->writer = *std::move(writer);
    }
    MutexLock lock(loader_.mutex_);
    loader_.open_[item.weight] = std::move(open);
    return absl::OkStatus();
  }

  absl::Status Advance(int64_t bytes) {
    done_ += bytes;
    if (progress_ && !progress_(done_, total_))
      return absl::CancelledError("loading was cancelled");
    return absl::OkStatus();
  }

  WeightLoader& loader_;
  const LoadManifest& manifest_;
  const bool ignore_files_;
  const WeightProgress& progress_;
  std::vector<std::shared_ptr<const MappedFile>> files_;  // null: not here
  absl::flat_hash_map<std::pair<int32_t, int32_t>, int64_t>
      mappings_;  // handle, by device and file
  LoadResult result_;
  int64_t done_ = 0;
  int64_t total_ = 0;
};

absl::StatusOr<LoadResult> WeightLoader::Load(const LoadManifest& manifest, bool ignore_files,
                                              const WeightProgress& progress) {
  return Run(*this, manifest, ignore_files, progress).Do();
}

absl::Status WeightLoader::Write(int32_t weight, int64_t offset, absl::Span<const uint8_t> data) {
  MutexLock lock(mutex_);
  const auto found = open_.find(weight);
  if (found == open_.end()) {
    return absl::NotFoundError(absl::StrCat("weight ", weight, " does not wait for bytes"));
  }
  OpenWeight& open = *found->second;
  const auto bytes = static_cast<int64_t>(data.size());
  if (offset != open.done || bytes > open.bytes - open.done) {
    return absl::InvalidArgumentError(absl::StrCat("weight '", open.name, "': ", bytes,
                                                   " bytes at ", offset, ", want them at ",
                                                   open.done, " of ", open.bytes));
  }
  RETURN_IF_ERROR(open.buffer->Set(offset, data.data(), bytes));
  open.digest.Update(data);
  open.done += bytes;
  if (open.writer != nullptr && !open.writer->Append(data).ok()) open.writer.reset();
  return absl::OkStatus();
}

absl::Status WeightLoader::Finish(int32_t weight, const Sha256Digest& digest) {
  MutexLock lock(mutex_);
  const auto found = open_.find(weight);
  if (found == open_.end()) {
    return absl::NotFoundError(absl::StrCat("weight ", weight, " does not wait for bytes"));
  }
  OpenWeight& open = *found->second;
  const bool complete = open.done == open.bytes;
  if (!complete || open.digest.Finish() != digest) {
    open.done = 0;
    (void)open.digest.Finish();
    open.writer.reset();
    return absl::DataLossError(absl::StrCat("weight '", open.name,
                                            complete
                                                ? "' arrived with other bytes than were sent"
                                                : "' ended before all of its bytes had arrived"));
  }
  if (open.writer != nullptr) (void)cache_->Commit(open.key, digest, std::move(open.writer));
  open_.erase(found);
  return absl::OkStatus();
}

int64_t WeightLoader::open_count() {
  MutexLock lock(mutex_);
  return static_cast<int64_t>(open_.size());
}

}  // namespace weft
