// Listens on a port and carries requests to handlers, with cpp-httplib and limits of our own.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/http/http_message.h"

namespace weft {

struct ListenerOptions {
  std::string host = "127.0.0.1";
  int port = 0;           // 0: any free one
  size_t threads = 1024;  // connections at once; more wait
  size_t most_body_bytes = 0;
  int64_t most_head_bytes = 64 << 10;               // request line and headers
  std::chrono::milliseconds idle_timeout{10'000};   // between requests of a connection
  std::chrono::milliseconds head_timeout{10'000};   // for a whole head
  std::chrono::milliseconds body_timeout{60'000};   // for a whole body
  std::chrono::milliseconds write_timeout{30'000};  // without any progress
  // Where all threads are taken, clients that are slow in the midst of a request are cut for those
  // that come, not only those between requests.
  bool cut_slow_clients = false;
};

// Called on the threads of connections.
struct ListenerHandlers {
  // Looks at a request without its body, of which so many bytes are announced (-1: nobody knows). A
  // reply: the body is not read.
  std::function<std::optional<HttpReply>(const HttpRequest&, int64_t body_bytes)> refuse;
  std::function<HttpReply(const HttpRequest&, ClientWatch&)> handle;
  // For a request that could not be read: the HTTP status and what was wrong.
  std::function<HttpReply(const HttpRequest&, int http_status, const std::string& message)> broken;
  std::function<std::string()> next_id;
  // 1: a connection was opened; -1: one was closed.
  std::function<void(int change)> connections;
};

class HttpListener {
 public:
  // Takes connections when it returns. `clock` outlives it. Errors: INVALID_ARGUMENT or
  // UNAVAILABLE with the address and what the system says.
  static absl::StatusOr<std::unique_ptr<HttpListener>> Start(const ListenerOptions& options,
                                                             ListenerHandlers handlers,
                                                             const Clock& clock);
  // Cuts all connections and ends the threads.
  ~HttpListener();
  HttpListener(const HttpListener&) = delete;
  HttpListener& operator=(const HttpListener&) = delete;

  // Until no request is under way: all replies are written. False: not by `deadline`.
  bool AwaitReplies(Clock::TimePoint deadline);

  int port() const { return port_; }

 private:
  class Server;
  HttpListener(std::unique_ptr<Server> server, int port);

  std::unique_ptr<Server> server_;
  const int port_;
  std::thread thread_;
};

}  // namespace weft
