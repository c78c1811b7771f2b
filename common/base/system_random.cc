#include "common/base/system_random.h"

#include <sys/random.h>
#include <sys/types.h>

namespace weft {

absl::Status FillWithSystemRandom(absl::Span<uint8_t> bytes) {
  // So few come whole, or not at all.
  if (getrandom(bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size())) {
    return absl::OkStatus();
  }
  return absl::InternalError("no random bytes from the system");
}

}  // namespace weft
