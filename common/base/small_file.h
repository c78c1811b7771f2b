// Files of people that are small and may be anything: keys, tokens, settings.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"

namespace weft {

// The whole of a regular file of at most that many bytes, at once: what waits for a writer or has
// no end (a pipe, a device) is refused, not read. Links are followed. Errors name the path:
// NOT_FOUND; PERMISSION_DENIED; INVALID_ARGUMENT for what can never be read; of the system.
absl::StatusOr<std::string> ReadSmallFile(const std::string& path, size_t most_bytes);

}  // namespace weft
