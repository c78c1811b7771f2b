// Weights that came over the network, kept on disk for the next time.
//
// A folder of files, one per tensor, named by the digest of what was asked for (file identity and
// slices) and headed by the digest of the content. Entries are written beside their name and
// renamed, verified when they are read, and removed least recently used first beyond the quota.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/digest/sha256.h"

namespace weft {

// Thread-safe; several processes may share a folder.
class WeightCache {
 public:
  // Makes the folder. Errors: those of the file system, naming the folder; INVALID_ARGUMENT for a
  // quota below one byte.
  static absl::StatusOr<std::unique_ptr<WeightCache>> Open(std::string folder, int64_t quota_bytes,
                                                           Logger& logger);

  // An entry that is being written; dropped unless it is committed.
  class Writer {
   public:
    ~Writer();
    Writer(const Writer&) = delete;
    Writer& operator=(const Writer&) = delete;
    // In order. Errors: those of the file system.
    absl::Status Append(absl::Span<const uint8_t> data);

   private:
    friend class WeightCache;
    Writer(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}
    std::string path_;  // of the unfinished file
    int descriptor_;
    int64_t bytes_ = 0;
  };

  // Errors: RESOURCE_EXHAUSTED for more bytes than the quota; those of the file system.
  absl::StatusOr<std::unique_ptr<Writer>> Start(const Sha256Digest& key, int64_t bytes);
  // Makes the entry visible under `key` and enforces the quota.
  absl::Status Commit(const Sha256Digest& key, const Sha256Digest& content,
                      std::unique_ptr<Writer> writer);

  // Copies the entry to `sink` piece by piece, which is called with offset and bytes. An entry
  // whose content does not have the digest that it was stored with is removed, and what the sink
  // got is void. Errors: NOT_FOUND; DATA_LOSS; those of the sink and the file system.
  using Sink = absl::FunctionRef<absl::Status(int64_t offset, absl::Span<const uint8_t> data)>;
  absl::Status Read(const Sha256Digest& key, int64_t bytes, Sink sink);

  // Bytes of all entries.
  int64_t used_bytes() const;

 private:
  WeightCache(std::string folder, int64_t quota_bytes, Logger& logger)
      : folder_(std::move(folder)), quota_bytes_(quota_bytes), logger_(logger) {}
  std::string PathOf(const Sha256Digest& key) const;
  void EnforceQuota(const std::string& keep);

  const std::string folder_;
  const int64_t quota_bytes_;
  Logger& logger_;
  Mutex mutex_;  // of the quota
  int64_t next_temporary_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace weft
