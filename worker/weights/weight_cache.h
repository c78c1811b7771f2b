// Weights that came over the network, kept on disk for the next time.
//
// A folder of entries, one per weight, each named by the digest of its content: SHA-256 over the
// digests of its pieces of 1 MiB, which stand in the entry. Beside them small files that say which
// content a request (identities of files, slices) led to, for those who do not know digests, and
// unfinished entries, from which a load that was cut off goes on. What is read is checked; the
// least recently used goes first beyond the quota.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/log.h"
#include "common/base/mapped_file.h"
#include "common/base/mutex.h"
#include "common/digest/sha256.h"

namespace weft {

// What is looked for: a request, and the digests of its pieces if they are known.
struct WeightKey {
  Sha256Digest request;
  int64_t bytes = 0;
  std::vector<Sha256Digest> digests;
};

// The name of content with those pieces.
Sha256Digest ContentDigest(int64_t bytes, absl::Span<const Sha256Digest> digests);

// An entry in memory. Its table is sound; each piece is to be compared with its digest.
class CachedWeight {
 public:
  int64_t bytes() const { return bytes_; }
  absl::Span<const Sha256Digest> digests() const { return digests_; }
  absl::Span<const uint8_t> content() const { return content_; }

 private:
  friend class WeightCache;
  std::unique_ptr<MappedFile> file_;
  int64_t bytes_ = 0;
  std::vector<Sha256Digest> digests_;
  absl::Span<const uint8_t> content_;
};

// Thread-safe; several processes may share a folder.
class WeightCache {
 public:
  // Makes the folder. Errors: those of the file system, naming the folder; INVALID_ARGUMENT for a
  // quota below one byte.
  static absl::StatusOr<std::unique_ptr<WeightCache>> Open(std::string folder, int64_t quota_bytes,
                                                           Logger& logger);

  // Errors: NOT_FOUND; DATA_LOSS for an entry whose table is damaged, which is removed.
  absl::StatusOr<std::shared_ptr<const CachedWeight>> Find(const WeightKey& key);
  // Removes an entry of which a piece was found damaged.
  void Remove(const CachedWeight& entry);

  // An entry that is being written, piece by piece in any order, by several threads. What is
  // written stays for the next load unless the entry is finished.
  class Writer {
   public:
    ~Writer();
    Writer(const Writer&) = delete;
    Writer& operator=(const Writer&) = delete;
    // A piece that an earlier load left, if it is there, undamaged, and what the key wants.
    bool ReadKept(int64_t index, std::vector<uint8_t>& data) const;
    // Errors: those of the file system; INVALID_ARGUMENT for a piece that the entry does not have.
    absl::Status Write(int64_t index, absl::Span<const uint8_t> data, const Sha256Digest& digest);

   private:
    friend class WeightCache;
    Writer(WeightKey key, std::string path) : key_(std::move(key)), path_(std::move(path)) {}
    absl::Status Open();
    absl::Status OpenToRead();
    bool HasHeader() const;
    absl::StatusOr<std::vector<Sha256Digest>> Table() const;
    int64_t PieceBytes(int64_t index) const;
    int64_t count() const;

    const WeightKey key_;
    const std::string path_;  // of the unfinished file
    int descriptor_ = -1;
    bool kept_ = false;  // it was there before
    bool read_only_ = false;
    Mutex mutex_;
    bool written_ ABSL_GUARDED_BY(mutex_) = false;
  };

  // Errors: RESOURCE_EXHAUSTED for more bytes than the quota; UNAVAILABLE if somebody else writes
  // that entry; those of the file system.
  absl::StatusOr<std::unique_ptr<Writer>> Start(const WeightKey& key);
  // What an earlier load left of an entry, to read only: also while somebody else writes it.
  // Errors: NOT_FOUND; those of the file system.
  absl::StatusOr<std::unique_ptr<const Writer>> Unfinished(const WeightKey& key) const;
  // Makes a complete entry visible and enforces the quota. Errors: FAILED_PRECONDITION if a piece
  // is missing; those of the file system.
  absl::Status Commit(const std::shared_ptr<Writer>& writer);

  // For those who go on without the cache: says once, as a warning, that it could not be written.
  // OK and UNAVAILABLE, which is that somebody else writes, say nothing.
  void NoteUnwritten(const absl::Status& status);

  // Bytes of all entries, unfinished ones too.
  int64_t used_bytes() const;
  int64_t quota_bytes() const { return quota_bytes_; }

 private:
  WeightCache(std::string folder, int64_t quota_bytes, Logger& logger)
      : folder_(std::move(folder)), quota_bytes_(quota_bytes), logger_(logger) {}
  std::string PathOf(const Sha256Digest& name, const char* suffix) const;
  // The content that a request led to. Errors: NOT_FOUND.
  absl::StatusOr<Sha256Digest> ContentOf(const Sha256Digest& request) const;
  absl::Status WriteAlias(const Sha256Digest& request, const Sha256Digest& content);
  void EnforceQuota(const std::string& keep);

  const std::string folder_;
  const int64_t quota_bytes_;
  Logger& logger_;
  std::atomic<bool> unwritten_ = false;  // it was said
  Mutex mutex_;                          // of the quota
  int64_t next_temporary_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace weft
