// The time of day, for what people and other programs date. Nothing waits by it: it can jump.
#pragma once

#include <cstdint>

namespace weft {

// Since 1970-01-01 00:00 UTC.
int64_t UnixSeconds();
int64_t UnixMicroseconds();

}  // namespace weft
