// What every MessagePort must do, as tests with one parameter: how its transports are made. A test
// program links the message_port_*_cases.cc and instantiates MessagePortSuite.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/transport/transport.h"
#include "gtest/gtest.h"

namespace weft {

// Transports that reach each other, one for each process of the world.
class TransportWorld {
 public:
  virtual ~TransportWorld() = default;
  virtual absl::StatusOr<std::unique_ptr<Transport>> NewTransport() = 0;
};

struct MessagePortCase {
  std::string name;       // of the instance
  std::string transport;  // what traffic() must call it
  std::function<std::unique_ptr<TransportWorld>()> make_world;
};

inline constexpr uint64_t kTestSession = 0x5e5510;
inline constexpr uint32_t kTestEpoch = 3;

class MessagePortSuite : public ::testing::TestWithParam<MessagePortCase> {
 protected:
  void SetUp() override;

  // Far enough that only a hang reaches it.
  static Clock::TimePoint Late() { return SystemClock().Now() + std::chrono::seconds(60); }
  static Clock::TimePoint Soon() { return SystemClock().Now() + std::chrono::milliseconds(50); }

  static PortOptions Options(int32_t own_number, const PortLimits& limits = {});
  static PortPeer Peer(int32_t number);
  // The port of one more process. Tests end where it cannot be made.
  std::unique_ptr<MessagePort> NewPort(const PortOptions& options);
  // Ports 0 .. count-1, all connected with each other.
  std::vector<std::unique_ptr<MessagePort>> NewPorts(int count, const PortLimits& limits = {});
  // Connects `port`, whose number is `number`, to `other`, which drives itself meanwhile.
  static absl::Status Connect(MessagePort& port, int32_t number, MessagePort& other,
                              int32_t other_number);

  std::unique_ptr<TransportWorld> world_;
  std::vector<std::unique_ptr<Transport>> transports_;
};

// Bytes that tell where they belong: a function of the seed and their index.
Payload PatternPayload(uint64_t seed, int64_t bytes);

// A header of the suite's epoch.
inline MessageHeader Header(uint32_t kind, int64_t step, int32_t id) {
  return {.epoch = kTestEpoch, .kind = kind, .step = step, .id = id};
}

// A thread that runs `work` and is joined at the end of the scope.
class ScopedThread {
 public:
  explicit ScopedThread(std::function<void()> work) : thread_(std::move(work)) {}
  ~ScopedThread() { thread_.join(); }
  ScopedThread(const ScopedThread&) = delete;
  ScopedThread& operator=(const ScopedThread&) = delete;

 private:
  std::thread thread_;
};

// Keeps `port` moving from a thread of its own, as its owner's Receive would, until the end of the
// scope.
class ScopedDriver {
 public:
  explicit ScopedDriver(MessagePort& port);
  ~ScopedDriver();

 private:
  MessagePort& port_;
  std::atomic<bool> stop_ = false;
  ScopedThread thread_;
};

}  // namespace weft
