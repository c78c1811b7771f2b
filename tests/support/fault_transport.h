// Puts the planted fault between a worker's sessions and a transport that knows no gRPC.
#pragma once

#include <memory>

#include "common/transport/transport.h"

namespace weft {

// `inner` where no fault of the data plane is planted; else its ports strike when a message of the
// planted kind passes, in either direction, and send garbage where that is the action.
std::unique_ptr<Transport> WithPlantedFault(std::unique_ptr<Transport> inner);

}  // namespace weft
