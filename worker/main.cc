// weft-worker: offers the devices of one machine to coordinators.
#include "worker/command_line.h"

int main(int argc, char** argv) { return weft::RunWorkerCommandLine(argc, argv, nullptr); }
