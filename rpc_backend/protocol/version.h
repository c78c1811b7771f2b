// Who speaks to whom: versions, features and the set of operations, compared before anything else.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/digest/sha256.h"

namespace weft {

// Where workers listen unless told otherwise.
inline constexpr int32_t kDefaultWorkerPort = 7000;

// The major version must be equal on both sides; a minor difference works: what both know is used.
inline constexpr uint32_t kProtocolMajor = 2;
inline constexpr uint32_t kProtocolMinor = 2;

// Since which minor version programs may hold detached collectives.
inline constexpr uint32_t kDetachedCollectivesMinor = 2;

// What either side says first. Nothing in it is trusted.
struct ProtocolHello {
  uint32_t major = 0;
  uint32_t minor = 0;
  std::string release;  // of the program: "0.1.0"
  Sha256Digest op_set;
  std::vector<std::string> features;  // of this protocol, beyond its version
  friend bool operator==(const ProtocolHello&, const ProtocolHello&) = default;
};

// This build's.
ProtocolHello OwnHello();

// SHA-256 over the op table (names, arity, attribute kinds, flags), the names of functions, and the
// data types (GGUF numbers, blocks): two builds with equal hashes mean the same by the same graph.
Sha256Digest OpSetHash();

// OK if the two can work together. `other_name` is how people call the other side ("worker
// 10.0.0.2:7000"), `own_role` this one ("coordinator" or "worker"). Errors: FAILED_PRECONDITION
// "worker 10.0.0.2:7000 speaks protocol 2.1 (weft 0.3.0), this coordinator 1.4 (weft 0.1.0):
// upgrade the coordinator".
absl::Status CheckHello(const ProtocolHello& own, std::string_view own_role,
                        const ProtocolHello& other, std::string_view other_name);

// The features that both have, in the order of `own`.
std::vector<std::string> SharedFeatures(const ProtocolHello& own, const ProtocolHello& other);

}  // namespace weft
