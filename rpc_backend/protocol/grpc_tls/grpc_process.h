// What concerns gRPC in the whole process.
#pragma once

#include "absl/status/status.h"

namespace weft {

// From main(), before other threads. gRPC 1.51 has no setting for the least version of TLS; it
// takes the ciphers of TLS 1.2 from an environment variable, and gets one there that no
// certificate can serve. Its own log lines come out like ours, without those that say nothing.
void PrepareGrpcProcess();

// FAILED_PRECONDITION unless that was called: then TLS 1.2 could be negotiated.
absl::Status CheckGrpcProcess();

}  // namespace weft
