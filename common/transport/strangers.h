// Those who connected to a data port and have not proved who they are: which of them goes when
// there are too many.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/types/span.h"

namespace weft {

// How long a connection may take to prove itself.
inline constexpr std::chrono::seconds kProofTime{5};
// Connections to one port (UCX) or process (gRPC) that may be at it at the same time.
inline constexpr int64_t kMaxStrangers = 64;

// Which of the strangers makes room for the next: the first of those from where most come, so that
// a host that floods the port pushes out itself. `hosts` names where each comes from, the oldest
// first; not empty.
size_t StrangerToDrop(absl::Span<const std::string> hosts);

// "192.0.2.1" of "192.0.2.1:80", "[2001:db8::1]" of "[2001:db8::1]:80".
std::string_view HostOf(std::string_view socket_address);

}  // namespace weft
