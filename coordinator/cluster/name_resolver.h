// The addresses behind a name, as the system knows them: files, DNS.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/host_address.h"

namespace weft {

// All addresses of a name, each with its port ("10.0.0.2:7000"), sorted, none twice, not empty.
// Errors: UNAVAILABLE naming it where it has none; DEADLINE_EXCEEDED.
using ResolveName =
    std::function<absl::StatusOr<std::vector<std::string>>(const HostAddress& name)>;

// Asks the system, on a thread of its own that is left behind where the answer takes longer than
// `timeout`. While one is behind, the next question fails at once. Any thread may call the result.
ResolveName SystemResolver(std::chrono::milliseconds timeout);

}  // namespace weft
