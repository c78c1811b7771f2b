#include "worker/weights/weight_sources.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace weft {
namespace {

// A column of a matrix is many slices: they are read with what lies between them.
constexpr int64_t kReadGapBytes = int64_t{64} << 10;

}  // namespace

WeightKey KeyOf(const LoadManifest& manifest, const WeightEntry& weight) {
  Sha256 digest;
  for (const FileSlice& slice : weight.slices) {
    digest.Update(manifest.files[static_cast<size_t>(slice.file)].identity.bytes);
    digest.UpdateInt(slice.offset);
    digest.UpdateInt(slice.bytes);
  }
  return {digest.Finish(), ContentBytes(weight), weight.digests};
}

void WeightBytes::Take(int64_t offset, int64_t bytes,
                       std::vector<absl::Span<const uint8_t>>& taken) const {
  for (const absl::Span<const uint8_t> part : parts) {
    const auto size = static_cast<int64_t>(part.size());
    if (offset < size && bytes > 0) {
      const int64_t count = std::min(bytes, size - offset);
      taken.push_back(part.subspan(static_cast<size_t>(offset), static_cast<size_t>(count)));
      bytes -= count;
      offset += count;
    }
    offset -= size;
  }
}

WeightSources::WeightSources(const LoadManifest& manifest, bool ignore_files, ModelFiles& files,
                             WeightCache* cache)
    : manifest_(manifest), cache_(cache) {
  files_.resize(manifest.files.size());
  if (ignore_files) return;
  for (size_t i = 0; i < files_.size(); ++i) {
    auto file = files.Open(manifest.files[i]);
    if (file.ok()) {
      files_[i] = *std::move(file);
    } else if (remark_.empty()) {
      remark_ = std::string(file.status().message());
    }
  }
}

bool WeightSources::FilesAreHere(const WeightEntry& weight) const {
  return std::all_of(weight.slices.begin(), weight.slices.end(),
                     [this](const FileSlice& slice) { return files_[slice.file] != nullptr; });
}

bool WeightSources::Has(const WeightEntry& weight) const {
  return FilesAreHere(weight) || (cache_ != nullptr && cache_->Find(KeyOf(manifest_, weight)).ok());
}

void WeightSources::Announce(absl::Span<const FileSlice> slices) const {
  for (size_t i = 0; i < slices.size();) {
    const int32_t file = slices[i].file;
    const int64_t begin = slices[i].offset;
    int64_t end = begin;
    for (; i < slices.size() && slices[i].file == file && slices[i].offset >= end &&
           slices[i].offset - end < kReadGapBytes;
         ++i) {
      end = slices[i].offset + slices[i].bytes;
    }
    files_[file]->mapped->WillNeed(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
  }
}

absl::StatusOr<WeightBytes> WeightSources::Find(const WeightEntry& weight) const {
  WeightBytes found;
  if (FilesAreHere(weight)) {
    Announce(weight.slices);
    for (const FileSlice& slice : weight.slices) {
      const std::shared_ptr<const ModelFiles::File>& file = files_[slice.file];
      found.parts.push_back(file->mapped->bytes().subspan(static_cast<size_t>(slice.offset),
                                                          static_cast<size_t>(slice.bytes)));
      found.memory.push_back(file);
    }
    return found;
  }
  if (cache_ != nullptr) {
    auto entry = cache_->Find(KeyOf(manifest_, weight));
    if (entry.ok()) {
      found.parts.push_back((*entry)->content());
      found.memory.push_back(*std::move(entry));
      return found;
    }
  }
  return absl::NotFoundError(absl::StrCat("weight '", weight.name, "' is not on this machine"));
}

}  // namespace weft
