#include "worker/weights/open_weights.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace weft {
namespace {

std::string NameOf(const NewOpenWeight& weight) {
  return absl::StrCat("weight '", weight.name, "' on ", weight.device);
}

}  // namespace

absl::StatusOr<int64_t> OpenWeights::Add(int32_t weight, NewOpenWeight open) {
  auto entry = std::make_shared<Entry>();
  const int64_t count = WeightPieceCount(open.key.bytes);
  entry->info = std::move(open);
  {
    MutexLock lock(entry->mutex);
    entry->pieces.resize(static_cast<size_t>(count));
    entry->missing = count;
    entry->cached = cache_ != nullptr;
  }
  RETURN_IF_ERROR(TakeKept(*entry));
  bool complete = false;
  {
    MutexLock lock(entry->mutex);
    complete = entry->missing == 0;
  }
  if (complete) {
    (void)WriterOf(*entry);
    Finish(*entry);
    return entry->info.key.bytes;
  }
  {
    MutexLock lock(mutex_);
    entries_[weight] = std::move(entry);
  }
  return Here(weight);
}

absl::Status OpenWeights::TakeKept(Entry& entry) {
  if (cache_ == nullptr) return absl::OkStatus();
  const auto kept = cache_->Unfinished(entry.info.key);
  if (!kept.ok()) return absl::OkStatus();
  std::vector<uint8_t> data;
  // The sender goes on from the first piece that is missing; what is behind it comes again.
  for (int64_t i = 0; (*kept)->ReadKept(i, data); ++i) {
    RETURN_IF_ERROR(Set(*entry.info.buffer, i * kWeightPieceBytes, data));
    Mark(entry, i);
  }
  return absl::OkStatus();
}

std::shared_ptr<WeightCache::Writer> OpenWeights::WriterOf(Entry& entry) {
  MutexLock lock(entry.mutex);
  if (entry.writer != nullptr || !entry.cached) return entry.writer;
  auto writer = cache_->Start(entry.info.key);
  // A cache that cannot be written is no reason not to load.
  entry.cached = writer.ok();
  if (!writer.ok()) cache_->NoteUnwritten(writer.status());
  if (writer.ok()) entry.writer = *std::move(writer);
  return entry.writer;
}

bool OpenWeights::Mark(Entry& entry, int64_t index) {
  MutexLock lock(entry.mutex);
  if (entry.pieces[static_cast<size_t>(index)]) return false;
  entry.pieces[static_cast<size_t>(index)] = true;
  return --entry.missing == 0;
}

absl::Status OpenWeights::Set(Buffer& buffer, int64_t offset, absl::Span<const uint8_t> data) {
  const auto bytes = static_cast<int64_t>(data.size());
  if (buffer.type().is_host()) return buffer.Set(offset, data.data(), bytes);
  MutexLock lock(device_mutex_);
  return buffer.Set(offset, data.data(), bytes);
}

absl::StatusOr<std::shared_ptr<OpenWeights::Entry>> OpenWeights::Find(int32_t weight) const {
  MutexLock lock(mutex_);
  const auto found = entries_.find(weight);
  if (found == entries_.end()) {
    return absl::NotFoundError(absl::StrCat("weight ", weight, " does not wait for bytes"));
  }
  return found->second;
}

absl::StatusOr<std::vector<WeightSpan>> OpenWeights::Prepare(
    absl::Span<const WeightToTake> weights) {
  std::vector<WeightSpan> spans;
  for (const WeightToTake& wanted : weights) {
    ASSIGN_OR_RETURN(const std::shared_ptr<Entry> entry, Find(wanted.weight));
    WeightKey& key = entry->info.key;
    {
      MutexLock lock(entry->mutex);
      const auto count = static_cast<size_t>(WeightPieceCount(key.bytes));
      const bool fits = wanted.digests.empty() || wanted.digests.size() == count;
      if (!fits ||
          (!wanted.digests.empty() && !key.digests.empty() && wanted.digests != key.digests)) {
        return absl::InvalidArgumentError(
            absl::StrCat(NameOf(entry->info), ": these are not the digests of its pieces"));
      }
      if (key.digests.empty()) key.digests = wanted.digests;
    }
    spans.push_back({key.bytes, Here(wanted.weight)});
  }
  return spans;
}

absl::Status OpenWeights::TakePiece(int32_t weight, int64_t offset, absl::Span<const uint8_t> data,
                                    const Sha256Digest* sent) {
  ASSIGN_OR_RETURN(const std::shared_ptr<Entry> entry, Find(weight));
  const int64_t bytes = entry->info.key.bytes;
  const auto size = static_cast<int64_t>(data.size());
  if (offset < 0 || offset % kWeightPieceBytes != 0 || offset >= bytes ||
      size != std::min(kWeightPieceBytes, bytes - offset)) {
    return absl::InvalidArgumentError(absl::StrCat(NameOf(entry->info), ": ", size, " bytes at ",
                                                   offset, " are no piece of ", bytes));
  }
  const int64_t index = offset / kWeightPieceBytes;
  Sha256Digest wanted;
  {
    MutexLock lock(entry->mutex);
    const std::vector<Sha256Digest>& known = entry->info.key.digests;
    if (known.empty() && sent == nullptr) {
      return absl::FailedPreconditionError(
          absl::StrCat(NameOf(entry->info), ": nobody knows the digests of its pieces"));
    }
    wanted = known.empty() ? *sent : known[static_cast<size_t>(index)];
  }
  if (Sha256::Of(data) != wanted) {
    return absl::DataLossError(absl::StrCat(NameOf(entry->info), ": bytes ", offset, " to ",
                                            offset + size, " are not those of their digest"));
  }
  RETURN_IF_ERROR(Set(*entry->info.buffer, offset, data));
  if (const auto writer = WriterOf(*entry); writer != nullptr) {
    const absl::Status written = writer->Write(index, data, wanted);
    cache_->NoteUnwritten(written);
    if (!written.ok()) {
      MutexLock lock(entry->mutex);
      entry->cached = false;
      entry->writer.reset();
    }
  }
  if (!Mark(*entry, index)) return absl::OkStatus();
  {
    MutexLock lock(mutex_);
    entries_.erase(weight);
  }
  Finish(*entry);
  return absl::OkStatus();
}

void OpenWeights::Finish(Entry& entry) {
  std::shared_ptr<WeightCache::Writer> writer;
  {
    MutexLock lock(entry.mutex);
    writer = std::move(entry.writer);
    entry.cached = false;
  }
  if (writer != nullptr) cache_->NoteUnwritten(cache_->Commit(writer));
}

int64_t OpenWeights::Here(int32_t weight) const {
  const absl::StatusOr<std::shared_ptr<Entry>> entry = Find(weight);
  if (!entry.ok()) return std::numeric_limits<int64_t>::max();
  MutexLock lock((*entry)->mutex);
  const std::vector<bool>& pieces = (*entry)->pieces;
  const auto first = std::find(pieces.begin(), pieces.end(), false) - pieces.begin();
  return std::min((*entry)->info.key.bytes, static_cast<int64_t>(first) * kWeightPieceBytes);
}

int64_t OpenWeights::count() const {
  MutexLock lock(mutex_);
  return static_cast<int64_t>(entries_.size());
}

}  // namespace weft
