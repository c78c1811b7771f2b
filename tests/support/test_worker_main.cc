// weft-worker-test: weft-worker with the devices of the tests, --devices cpu,fake:2,wrong-rope:1,
// and with faults, --fault VERB:ACTION[:COUNT] (tests/support/worker_faults.h).
#include <iostream>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "tests/support/fault_transport.h"
#include "tests/support/test_devices.h"
#include "tests/support/worker_faults.h"
#include "worker/command_line.h"

int main(int argc, char** argv) {
  std::vector<char*> arguments;
  for (int i = 0; i < argc; ++i) {
    if (std::string_view(argv[i]) != "--fault" || i + 1 == argc) {
      arguments.push_back(argv[i]);
      continue;
    }
    if (const absl::Status status = weft::PlantFault(argv[++i]); !status.ok()) {
      std::cerr << status.message() << "\n";
      return 2;
    }
  }
  const int count = static_cast<int>(arguments.size());
  arguments.push_back(nullptr);
  return weft::RunWorkerCommandLine(count, arguments.data(), weft::MakeTestDevices,
                                    weft::WithPlantedFault);
}
