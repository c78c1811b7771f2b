// Digests of what requests carry and must not arrive otherwise: gRPC without TLS has no checksum,
// and a wrong byte in an offset or an attribute would change answers unseen.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace weft {
namespace proto {
class InstantiateRequest;
}

// SHA-256 as it travels, 32 bytes: of a field of bytes, and of all bindings.
std::string ContentDigest(std::string_view bytes);
std::string ContentDigest(const proto::InstantiateRequest& request);

// OK if it is the digest of the content, or empty: protocol 2.1 had none. Errors: DATA_LOSS "the
// program was changed on its way", with what `content` says.
absl::Status CheckContent(std::string_view content, std::string_view bytes,
                          std::string_view digest);
absl::Status CheckContent(const proto::InstantiateRequest& request);

}  // namespace weft
