// weft: the coordinator and its command line. This file builds the parts and hands them down; there
// is nothing global.
#include "common/base/clock.h"
#include "common/base/log.h"
#include "coordinator/cli/command_line.h"
#include "rpc_backend/protocol/grpc_tls/grpc_process.h"
#include "rpc_backend/protocol/silence_protobuf.h"

int main(int argc, char** argv) {
  weft::PrepareGrpcProcess();
  weft::SilenceProtobuf();
  const weft::SystemClock clock;
  weft::Logger logger("weft", weft::LogLevel::kInfo);
  return weft::RunCommandLine(argc, argv, clock, logger);
}
