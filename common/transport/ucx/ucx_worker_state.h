// What a UcxWorker keeps of messages on their way and of events to report; for its sources only.
#pragma once

#include <array>
#include <list>
#include <memory>

#include "common/transport/ucx/ucx_worker.h"

namespace weft {

// A message on its way out; UCX reads header and payload until it is done.
struct UcxWorker::Outgoing {
  UcxWorker* worker = nullptr;
  UcxConnection* connection = nullptr;  // null once that is closed
  unsigned id = 0;
  std::array<uint8_t, kHelloBytes> header = {};
  size_t header_bytes = 0;
  Payload payload;
  std::list<std::unique_ptr<Outgoing>>::iterator place;
};

// A large message on its way in; UCX writes its payload until it is done.
struct UcxWorker::Incoming {
  UcxWorker* worker = nullptr;
  int64_t ticket = 0;
  Payload payload;
  std::list<std::unique_ptr<Incoming>>::iterator place;
};

// Something to report or do when UCX has returned.
struct UcxWorker::Deferred {
  enum class What : uint8_t { kRequest, kHello, kLost };
  What what = What::kRequest;
  ucp_conn_request_h request = nullptr;
  UcxConnection* connection = nullptr;  // null once that is closed
  Payload bytes;
  absl::Status status;
};

}  // namespace weft
