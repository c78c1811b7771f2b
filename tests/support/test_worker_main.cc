// weft-worker-test: weft-worker with the devices of the tests: --devices cpu,fake:2,wrong-rope:1.
#include "tests/support/test_devices.h"
#include "worker/command_line.h"

int main(int argc, char** argv) {
  return weft::RunWorkerCommandLine(argc, argv, weft::MakeTestDevices);
}
