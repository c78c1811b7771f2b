// Load manifests to and from bytes (proto/weights.proto): which slices of which files a worker is
// to hold as which weights.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/digest/sha256.h"
#include "rpc_backend/protocol/limits.h"

namespace weft {

// A file of a model, as the coordinator sees it.
struct ModelFileRecord {
  std::string path;
  int64_t size = 0;
  Sha256Digest identity;    // FileIdentity::digest
  int64_t data_offset = 0;  // of its tensor data, which the identity is made with
  friend bool operator==(const ModelFileRecord&, const ModelFileRecord&) = default;
};

// Consecutive bytes of a file.
struct FileSlice {
  int32_t file = 0;  // position in LoadManifest::files
  int64_t offset = 0;
  int64_t bytes = 0;
  friend bool operator==(const FileSlice&, const FileSlice&) = default;
};

// A tensor made of slices, one behind the other, on one device.
struct WeightEntry {
  int32_t weight = 0;  // the coordinator's id
  int32_t device = 0;  // position among the worker's
  int64_t bytes = 0;   // to reserve on the device; at least the slices'
  std::vector<FileSlice> slices;
  std::string name;  // for people
  // Of each piece of its content (weight_pieces.h), or empty: not known.
  std::vector<Sha256Digest> digests;
  friend bool operator==(const WeightEntry&, const WeightEntry&) = default;
};

struct LoadManifest {
  std::vector<ModelFileRecord> files;
  std::vector<WeightEntry> weights;
  friend bool operator==(const LoadManifest&, const LoadManifest&) = default;
};

std::string EncodeLoadManifest(const LoadManifest& manifest);

// Bytes of all slices.
int64_t ContentBytes(const WeightEntry& weight);

// Digests, one behind the other, as messages carry them.
std::string JoinDigests(absl::Span<const Sha256Digest> digests);
// Nothing unless they are `count`, or none.
std::optional<std::vector<Sha256Digest>> SplitDigests(std::string_view joined, int64_t count);

// Slices lie inside their files, weights hold their slices, no weight comes twice on a device,
// devices are below `device_count`. Errors: INVALID_ARGUMENT "weight 7 'blk.0.attn_q.weight' slice
// 2: ...".
absl::StatusOr<LoadManifest> DecodeLoadManifest(std::string_view bytes, int32_t device_count,
                                                const WireLimits& limits = {});

}  // namespace weft
