// The command line of weft-worker, for it and for the worker of the tests, which has more devices.
#pragma once

#include "worker/device_discovery.h"
#include "worker/worker.h"

namespace weft {

// Flags become WorkerOptions, and those a worker that runs until it is told to end. Returns the
// exit code. `factory` and `wrap_ucx` may be empty.
int RunWorkerCommandLine(int argc, char** argv, const DeviceFactory& factory,
                         const TransportWrapper& wrap_ucx = {});

}  // namespace weft
