// Which file of a model this is, found without reading all of it (decision 28): SHA-256 over its
// size, its GGUF header (all before the tensor data) and 64 blocks of the data, which a generator
// picks that is seeded with the hash of the header. Coordinator and worker compute it each from
// what they see; equal identities mean that the worker may use its own copy. It finds other models,
// other quantisations and torn downloads; it is no proof that every byte is equal: that is what
// FILE.weft-digest is for (weight_digests.h).
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/mapped_file.h"
#include "common/digest/sha256.h"
#include "common/gguf/gguf_file.h"

namespace weft {

inline constexpr int kIdentityBlockCount = 64;
inline constexpr int64_t kIdentityBlockBytes = 4096;

struct FileIdentity {
  int64_t size = 0;
  Sha256Digest header;      // of all bytes before the tensor data
  Sha256Digest digest;      // of size, header and blocks: the identity
  int64_t data_offset = 0;  // where the tensor data starts
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

// Of the bytes of a whole file; `data_offset` is where its tensor data starts (0: all are blocks).
// Blocks are cut at the end. Errors: INVALID_ARGUMENT unless 0 <= data_offset <= size.
absl::StatusOr<FileIdentity> IdentifyBytes(absl::Span<const uint8_t> bytes, int64_t data_offset);

// Reads the header for data_offset. Errors: those of ReadGguf, naming `file_name`.
absl::StatusOr<FileIdentity> IdentifyGguf(absl::Span<const uint8_t> bytes,
                                          std::string_view file_name);
absl::StatusOr<FileIdentity> IdentifyGguf(const MappedFile& file);
// One file of a model that is open: its header is not read again.
absl::StatusOr<FileIdentity> IdentifyGguf(const GgufFile& model, int file_index);

}  // namespace weft
