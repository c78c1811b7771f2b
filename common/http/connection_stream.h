// A client's socket as cpp-httplib reads and writes it, with limits that httplib does not have: on
// how long a whole head or body may take to arrive, and on its bytes.
#pragma once

#include <httplib.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <string>

#include "common/base/clock.h"
#include "common/http/waiting_clients.h"

namespace weft {

// The thread of the connection alone. Does not close the socket.
class ConnectionStream final : public httplib::Stream {
 public:
  // `waiting` and `clock` outlive it.
  ConnectionStream(int socket, std::chrono::milliseconds write_timeout, WaitingClients& waiting,
                   const Clock& clock)
      : socket_(socket), write_timeout_(write_timeout), waiting_(waiting), clock_(clock) {}

  // Until the next bytes of the client are there. False: they did not come in time.
  bool AwaitRequest(bool between_requests, std::chrono::milliseconds patience);
  // From now on at most `bytes` are read, until `deadline`.
  void SetLimits(int64_t bytes, Clock::TimePoint deadline) {
    bytes_left_ = bytes;
    deadline_ = deadline;
    began_ = clock_.Now();
  }
  // What was read since has met a limit.
  bool over_deadline() const { return over_deadline_; }
  bool over_bytes() const { return over_bytes_; }

  // --- httplib::Stream ---
  bool is_readable() const override { return true; }
  bool is_writable() const override { return !broken_; }
  // As recv, -1 at a limit.
  ssize_t read(char* to, size_t size) override;
  // All of it, or -1.
  ssize_t write(const char* from, size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  socket_t socket() const override { return socket_; }

 private:
  // Waits for `events`. False: not in time, or others need the thread.
  bool Await(short events, Clock::TimePoint until);
  bool Poll(short events, Clock::TimePoint until) const;
  ssize_t Fill();

  const int socket_;
  const std::chrono::milliseconds write_timeout_;
  WaitingClients& waiting_;
  const Clock& clock_;
  bool between_requests_ = false;
  Clock::TimePoint began_{};  // the part of the request that is read
  int64_t bytes_left_ = 0;
  Clock::TimePoint deadline_ = Clock::TimePoint::max();
  bool over_deadline_ = false;
  bool over_bytes_ = false;
  bool broken_ = false;
  std::array<char, 8192> buffer_;
  size_t begin_ = 0;  // of what is in the buffer
  size_t end_ = 0;
};

}  // namespace weft
