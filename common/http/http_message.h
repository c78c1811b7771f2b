// Requests and replies, whatever carries them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft {

struct HttpRequest {
  std::string method;
  std::string path;  // decoded, without a query
  std::string body;
  // Headers; empty where the request has none.
  std::string content_type;
  std::string authorization;
  std::string origin;
  std::string host;
  std::string address;  // of the client
  std::string id;       // ours; also in the reply
};

// Where the body of a streamed reply goes.
class ByteSink {
 public:
  virtual ~ByteSink() = default;
  // False: nobody reads any longer.
  virtual bool Write(std::string_view bytes) = 0;
};

struct HttpReply {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
  // Writes the body, once the headers are out; then `body` is not used.
  std::function<void(ByteSink&)> stream;
};

// A line of text.
inline HttpReply TextReply(int status, const std::string& text) {
  HttpReply reply;
  reply.status = status;
  reply.content_type = "text/plain; charset=utf-8";
  reply.body = text + "\n";
  return reply;
}

// The client that waits for a reply. It outlives handler and stream.
class ClientWatch {
 public:
  virtual ~ClientWatch() = default;
  // Calls `left` once, on another thread, when the client closes its connection; no more after the
  // result died.
  [[nodiscard]] virtual std::shared_ptr<void> OnLeft(std::function<void()> left) = 0;
};

using HttpHandler = std::function<HttpReply(const HttpRequest&, ClientWatch&)>;

}  // namespace weft
