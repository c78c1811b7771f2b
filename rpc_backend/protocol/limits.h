// How much one message may say. Senders keep these; receivers check them before they allocate.
#pragma once

#include <cstdint>

#include "common/program/program_limits.h"

namespace weft {

struct WireLimits {
  // --- Messages ---
  int64_t control_message_bytes = int64_t{32} << 20;  // gRPC's limit on both sides
  int64_t embedded_message_bytes = int64_t{31}
                                   << 20;         // a graph, program or manifest in one of them
  int64_t transfer_bytes = int64_t{16} << 20;     // data of WriteBuffer and ReadBuffer
  int64_t data_message_bytes = int64_t{5} << 30;  // payload of a data-plane message
  int64_t messages = int64_t{1} << 21;            // sub-messages of an embedded message
  // --- Text ---
  int64_t name_bytes = 256;      // of a worker, device, coordinator, tensor, host
  int64_t address_bytes = 4096;  // an address of a data plane, as its transport writes it
  int64_t path_bytes = 4096;
  int64_t reason_bytes = 4096;  // errors and remarks
  // --- Counts ---
  int64_t devices = 64;
  int64_t peers = 1024;
  int64_t features = 64;
  int64_t quarantined = 4096;
  int64_t files = 4096;
  int64_t weights = int64_t{1} << 17;
  int64_t slices = int64_t{1} << 20;    // of all weights of a manifest together
  int64_t layouts = int64_t{1} << 17;   // of one QueryTensorBytes
  int64_t bindings = int64_t{1} << 17;  // of one Instantiate
  // --- Sizes ---
  int64_t buffer_bytes = int64_t{1} << 42;
  int64_t file_bytes = int64_t{1} << 50;
  int64_t timeout_ms = int64_t{1000} * 3600 * 24;
  // --- What a worker keeps ---
  int64_t sessions = 256;
  int64_t buffers = int64_t{1} << 17;  // of a session

  ProgramLimits program;
};

}  // namespace weft
