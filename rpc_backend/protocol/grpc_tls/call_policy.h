// Which role may call what of a server of ours.
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "common/tls/certificate.h"

namespace weft {

// `path` is "/weft.proto.Worker/Session". The coordinator may call everything; a worker what
// workers need of each other: streams of the data plane (with weights in them) and health; and of
// the coordinator: to join. Errors: PERMISSION_DENIED naming certificate, role and path.
absl::Status CheckCall(std::string_view path, TlsRole role, std::string_view certificate);

}  // namespace weft
