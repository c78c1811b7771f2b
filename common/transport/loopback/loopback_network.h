// Ports that meet inside one process, with faults on demand: what tests of everything above
// transports run on. Same bounds and errors as over a wire; no thread, no descriptor.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/transport/transport.h"

namespace weft {

// What becomes of one message. It comes from `from` and goes to `to`, as numbered by the session.
enum class LoopbackFate : uint8_t { kDeliver, kDrop, kHold };
using LoopbackRule =
    std::function<LoopbackFate(int32_t from, int32_t to, const MessageHeader& header)>;

// Any thread may call. Ports share what is inside, so they may outlive the network.
class LoopbackNetwork {
 public:
  LoopbackNetwork();
  ~LoopbackNetwork();
  LoopbackNetwork(const LoopbackNetwork&) = delete;
  LoopbackNetwork& operator=(const LoopbackNetwork&) = delete;

  // Transports of one network reach each other; one stands for one process.
  std::unique_ptr<Transport> NewTransport();

  // Asked for every message from now on, under the network's lock; empty delivers everything.
  void SetRule(LoopbackRule rule);
  // Delivers, in order, what a rule held.
  void ReleaseHeld();
  int64_t held_messages() const;
  // The ports with these addresses lose each other.
  void Disconnect(std::string_view address, std::string_view other);

  class Core;

 private:
  // Shared with the ports, which may outlive the network object.
  std::shared_ptr<Core> core_;
};

}  // namespace weft
