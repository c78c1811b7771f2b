// Errors of decoders: "field 'ne' = 3: want 4 values".
#pragma once

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace weft {

// INVALID_ARGUMENT that names a field, its value and what is wrong with it.
inline absl::Status BadField(absl::string_view field, const absl::AlphaNum& value,
                             const absl::AlphaNum& why) {
  return absl::InvalidArgumentError(absl::StrCat("field '", field, "' = ", value, ": ", why));
}

// OK if least <= value <= most.
inline absl::Status CheckField(absl::string_view field, int64_t value, int64_t least,
                               int64_t most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return BadField(field, value, absl::StrCat("want ", least, " to ", most));
}

// OK if 0 <= value.
inline absl::Status CheckNotNegative(absl::string_view field, int64_t value) {
  return value >= 0 ? absl::OkStatus() : BadField(field, value, "is negative");
}

// The same error with what it is about before it.
inline absl::Status InPlace(const absl::AlphaNum& place, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(place, ": ", status.message()));
}

}  // namespace weft
