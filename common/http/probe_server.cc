#include "common/http/probe_server.h"

#include <atomic>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace weft {
namespace {

constexpr size_t kThreads = 16;

}  // namespace

HttpReply ProbeServer::Answer(const HttpRequest& request) const {
  if (request.method != "GET" && request.method != "HEAD") {
    HttpReply reply = TextReply(405, "want GET");
    reply.headers.emplace_back("Allow", "GET");
    return reply;
  }
  if (guard_) {
    std::optional<HttpReply> refusal = guard_(request);
    if (refusal.has_value()) return *std::move(refusal);
  }
  const auto page = pages_.find(request.path);
  return page == pages_.end() ? TextReply(404, "there is no such page") : page->second();
}

absl::StatusOr<std::unique_ptr<ProbeServer>> ProbeServer::Start(const std::string& host, int port,
                                                                Pages pages, const Clock& clock,
                                                                Guard guard) {
  std::unique_ptr<ProbeServer> server(new ProbeServer(std::move(pages), std::move(guard)));
  ListenerOptions options;
  options.host = host;
  options.port = port;
  options.threads = kThreads;
  options.cut_slow_clients = true;  // whoever reaches the port may idle, and probes must not wait
  ListenerHandlers handlers;
  handlers.refuse = [raw = server.get()](const HttpRequest& head, int64_t) {
    return std::optional<HttpReply>(raw->Answer(head));
  };
  handlers.handle = [raw = server.get()](const HttpRequest& request, ClientWatch&) {
    return raw->Answer(request);
  };
  handlers.broken = [](const HttpRequest&, int status, const std::string& message) {
    return TextReply(status, message);
  };
  handlers.next_id = [next = std::make_shared<std::atomic<int64_t>>(0)] {
    return absl::StrCat("probe-", next->fetch_add(1, std::memory_order_relaxed));
  };
  handlers.connections = [](int) {};
  ASSIGN_OR_RETURN(server->listener_, HttpListener::Start(options, std::move(handlers), clock));
  return server;
}

ProbeServer::~ProbeServer() = default;

}  // namespace weft
