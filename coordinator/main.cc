// weft: the coordinator and its command line. This file builds the parts and hands them down; there
// is nothing global.
#include "common/base/clock.h"
#include "common/base/log.h"
#include "coordinator/cli/command_line.h"

int main(int argc, char** argv) {
  const weft::SystemClock clock;
  weft::Logger logger("weft", weft::LogLevel::kInfo);
  return weft::RunCommandLine(argc, argv, clock, logger);
}
