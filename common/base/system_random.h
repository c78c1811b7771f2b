// Bytes that nobody can guess, from the system. Those that are to be the same again are in
// random.h.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace weft {

// At most 256 of them. Errors: INTERNAL where the system has none.
absl::Status FillWithSystemRandom(absl::Span<uint8_t> bytes);

}  // namespace weft
