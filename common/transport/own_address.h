// Under which addresses other machines find this one.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace weft {

// The address, in numbers, from which packets of this machine to `host` (a name or an address)
// leave. Sends nothing, but may ask a name server. UNAVAILABLE naming the host.
absl::StatusOr<std::string> OwnAddressTowards(const std::string& host);

// The address, in numbers, that other machines most likely reach: that of the default route, else
// of the first network interface that is up and no loopback one. Empty where there is none.
// (What the machine's own name stands for is no answer: often that is 127.0.1.1.)
std::string OwnAddress();

}  // namespace weft
