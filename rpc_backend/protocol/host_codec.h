// HostFacts as messages.
#pragma once

#include "common/host/host_facts.h"
#include "proto/worker.pb.h"

namespace weft {

void EncodeHost(const HostFacts& facts, proto::HostFacts& message);
// Of a message that CheckMessage has passed.
HostFacts DecodeHost(const proto::HostFacts& message);

}  // namespace weft
