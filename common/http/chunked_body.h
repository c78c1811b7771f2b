// Bodies of unknown length (RFC 9112, 7.1). httplib takes sizes that are none, such as -5, for huge
// ones and waits for them.
#pragma once

#include <cstddef>
#include <string>

#include "common/http/connection_stream.h"

namespace weft {

enum class ChunkedBody { kWhole, kTooLong, kBroken };

// Appends at most `most_bytes` to `body`; limits of time and framing are those of the stream.
ChunkedBody ReadChunkedBody(ConnectionStream& stream, size_t most_bytes, std::string& body);

}  // namespace weft
