// Reads the key-value section of a GGUF file.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/gguf/gguf_cursor.h"
#include "common/gguf/gguf_metadata.h"

namespace weft {

// Reads `count` entries from the cursor on; the caller has checked that the file could hold so
// many. Errors: INVALID_ARGUMENT, as GgufCursor::Error words them. Source: spec H.1 and rules 3 to
// 6 of H.2, the strict form.
absl::StatusOr<GgufMetadata> ReadGgufMetadata(GgufCursor& cursor, int64_t count);

}  // namespace weft
