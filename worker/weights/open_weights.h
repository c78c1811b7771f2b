// Weights of a session that have memory and wait for their bytes.
//
// Bytes come in pieces of 1 MiB, in any order, from several threads; each is compared with its
// digest before it counts, and goes to the cache at once, where it stays if the load is cut off.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/mutex.h"
#include "common/device/device.h"
#include "common/digest/sha256.h"
#include "rpc_backend/protocol/weight_pieces.h"
#include "worker/weights/weight_cache.h"

namespace weft {

struct NewOpenWeight {
  std::shared_ptr<Buffer> buffer;
  std::string device;  // its name, for errors
  std::string name;
  WeightKey key;
};

// One weight that somebody is about to send, with digests if they are known now and were not
// before.
struct WeightToTake {
  int32_t weight = 0;
  std::vector<Sha256Digest> digests;
};

// Thread-safe.
class OpenWeights {
 public:
  // `cache` may be null; else it outlives this.
  explicit OpenWeights(WeightCache* cache) : cache_(cache) {}

  // Takes over what an unfinished entry of the cache holds. Returns how many of its first bytes are
  // there; a weight that is complete is not open. Errors: those of the buffer.
  absl::StatusOr<int64_t> Add(int32_t weight, NewOpenWeight open);
  // What is still to come of them. Errors: NOT_FOUND; INVALID_ARGUMENT for digests that are not
  // those of its pieces.
  absl::StatusOr<std::vector<WeightSpan>> Prepare(absl::Span<const WeightToTake> weights);
  // `sent`: the digest that came with the piece, or null. Errors: DATA_LOSS naming weight and
  // device unless the bytes have the digest that is known, else that; NOT_FOUND;
  // INVALID_ARGUMENT for bytes that are no piece; FAILED_PRECONDITION where no digest is known.
  absl::Status TakePiece(int32_t weight, int64_t offset, absl::Span<const uint8_t> data,
                         const Sha256Digest* sent);
  // How many first bytes of it are there; all, if it is not open.
  int64_t Here(int32_t weight) const;
  int64_t count() const;

 private:
  struct Entry {
    NewOpenWeight info;
    mutable Mutex mutex;
    std::vector<bool> pieces ABSL_GUARDED_BY(mutex);  // that are there
    int64_t missing ABSL_GUARDED_BY(mutex) = 0;
    bool cached ABSL_GUARDED_BY(mutex) = true;  // nothing went wrong with the cache yet
    std::shared_ptr<WeightCache::Writer> writer ABSL_GUARDED_BY(mutex);
  };

  absl::StatusOr<std::shared_ptr<Entry>> Find(int32_t weight) const;
  absl::Status Set(Buffer& buffer, int64_t offset, absl::Span<const uint8_t> data);
  absl::Status TakeKept(Entry& entry);
  std::shared_ptr<WeightCache::Writer> WriterOf(Entry& entry);
  // True: that was the last missing one.
  static bool Mark(Entry& entry, int64_t index);
  void Finish(Entry& entry);

  WeightCache* const cache_;
  Mutex device_mutex_;  // memory that is not the processor's is written by one thread at a time
  mutable Mutex mutex_;
  absl::flat_hash_map<int32_t, std::shared_ptr<Entry>> entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft
