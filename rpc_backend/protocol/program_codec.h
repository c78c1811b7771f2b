// Programs to and from bytes (proto/program.proto).
//
// A decoded program is well-formed, not legal: its graph is that of DecodeGraph, its counts are
// within the limits, every kind is known. VerifyProgram can take any decoded program without
// crashing, and must, before it runs.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/program/program.h"
#include "rpc_backend/protocol/limits.h"

namespace weft {

// Equal programs give equal bytes, so that their digest can name them.
std::string EncodeProgram(const Program& program);

// Errors: INVALID_ARGUMENT naming what is wrong, "stream 0 command 7: field 'bytes' = -1: ...".
absl::StatusOr<Program> DecodeProgram(std::string_view bytes, const WireLimits& limits = {});

}  // namespace weft
