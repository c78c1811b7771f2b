// Brings weights into a worker: the worker takes what it finds in files, its cache or at peers; the
// rest is sent.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/device/buffer.h"
#include "common/digest/sha256.h"

namespace weft {

class FleetLink;

struct RemoteWeightFile {
  std::string path;
  int64_t size = 0;
  std::string identity;     // 32 bytes, as common/digest/file_identity.h makes them
  int64_t data_offset = 0;  // of its tensor data
};

// Consecutive bytes of a file.
struct RemoteWeightSlice {
  int32_t file = 0;
  int64_t offset = 0;
  int64_t bytes = 0;
};

// One tensor on one device: the slices, one behind the other.
struct RemoteWeightItem {
  int32_t weight = 0;         // id of the coordinator, unique in a call
  int32_t device = 0;         // position in the worker's inventory
  int64_t reserve_bytes = 0;  // at least those of the slices
  std::vector<RemoteWeightSlice> slices;
  std::string name;  // for people
  // SHA-256 of each MiB of its content, if they are known.
  std::vector<Sha256Digest> digests = {};
};

enum class RemoteWeightSource : uint8_t { kFile, kCache, kPeer, kStream };

struct RemoteWeight {
  int32_t weight = 0;
  Buffer* buffer = nullptr;  // one of RemoteWeights::buffers
  int64_t offset = 0;
  RemoteWeightSource source = RemoteWeightSource::kFile;
};

struct RemoteWeights {
  std::vector<std::unique_ptr<Buffer>> buffers;  // several weights may lie in one
  std::vector<RemoteWeight> weights;             // in the order of the items
  std::vector<std::string> remarks;              // why a file or a peer was not used
  int64_t bytes_streamed = 0;                    // from here
  int64_t bytes_from_peers = 0;
};

struct RemoteLoadProgress {
  int64_t bytes_done = 0;
  int64_t bytes_total = 0;
};

struct LoadRemoteWeightsOptions {
  bool ignore_files = false;  // as if the worker saw no file
  // Called from the calling thread with growing numbers; may be empty.
  std::function<void(const RemoteLoadProgress&)> progress;
  // Set by another thread to end the load; may be null.
  const std::atomic<bool>* cancel = nullptr;
};

// The bytes of a slice, valid until the load ends; called by several threads. Only asked for what
// must be sent or digested here.
using SliceReader =
    std::function<absl::StatusOr<absl::Span<const uint8_t>>(const RemoteWeightSlice& slice)>;

// Loads everything into one worker of a linked fleet; blocks. What the worker finds neither in a
// file nor in its cache comes from another worker that has it, over the data plane, else from here.
// Holds a few pieces of 1 MiB at a time. Errors name the worker: INVALID_ARGUMENT for files and
// items; those of the worker and of `reader`; CANCELLED; DEADLINE_EXCEEDED when nothing moves for
// the worker's stall_timeout or disk_timeout; DATA_LOSS where bytes arrived damaged twice; INTERNAL
// for a reply that makes no sense. Then nothing stays loaded.
absl::StatusOr<RemoteWeights> LoadRemoteWeights(FleetLink& link, int32_t worker,
                                                absl::Span<const RemoteWeightFile> files,
                                                absl::Span<const RemoteWeightItem> items,
                                                const SliceReader& reader,
                                                const LoadRemoteWeightsOptions& options);

}  // namespace weft
