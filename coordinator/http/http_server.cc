#include "coordinator/http/http_server.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/unix_time.h"
#include "coordinator/http/origin_check.h"
#include "coordinator/http/page/page_routes.h"

namespace weft {
namespace {

constexpr size_t kHealthThreads = 16;
constexpr int64_t kMostConnections = 16384;

std::chrono::milliseconds Milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

absl::Status CheckOptions(const HttpServerOptions& options) {
  const auto port_error = [](const char* flag, int port) {
    return absl::InvalidArgumentError(absl::StrCat(flag, ": ", port, " is no port"));
  };
  if (options.port < 0 || options.port > 65535) return port_error("--port", options.port);
  if (options.health_port < -1 || options.health_port > 65535) {
    return port_error("--health-port", options.health_port);
  }
  if (options.port == 65535 && options.health_port == -1) {
    return absl::InvalidArgumentError("--health-port: there is none after 65535, name one");
  }
  if (options.most_connections < 1 || options.most_connections > kMostConnections) {
    return absl::InvalidArgumentError(
        absl::StrCat("connections: ", options.most_connections, ", want 1 to ", kMostConnections));
  }
  for (const double seconds :
       {options.stall_seconds, options.head_timeout_seconds, options.body_timeout_seconds,
        options.write_timeout_seconds, options.idle_timeout_seconds}) {
    if (seconds > 0 && seconds <= 1e6) continue;
    return absl::InvalidArgumentError(absl::StrCat("a timeout is ", seconds, " s, want 0 to 1e6"));
  }
  for (const std::string& origin : options.cors_origins) {
    const absl::Status usable = CheckOriginText(origin);
    if (usable.ok()) continue;
    return absl::InvalidArgumentError(absl::StrCat("--cors-origin: ", usable.message()));
  }
  if (options.model_name.empty()) return absl::InvalidArgumentError("the model has no name");
  return absl::OkStatus();
}

bool IsLoopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.rfind("127.", 0) == 0;
}

}  // namespace

absl::Status CheckReach(const HttpServerOptions& options) {
  if (!options.api_keys.empty() || options.no_api_key || IsLoopback(options.host)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--host ", options.host,
      ": whoever reaches this address could use the model; give --api-key-file FILE, or pass "
      "--no-api-key on a network that you trust"));
}

namespace {

OriginRules RulesOf(const HttpServerOptions& options) {
  OriginRules rules;
  rules.origins = options.cors_origins;
  // Whoever holds a key is no page that a browser was lured to, and other addresses are meant to be
  // called by names that we cannot know.
  if (!options.api_keys.empty() || !IsLoopback(options.host)) return rules;
  rules.hosts = options.allowed_hosts;
  for (const char* name : {"localhost", "127.0.0.1", "[::1]"}) rules.hosts.emplace_back(name);
  rules.hosts.push_back(options.host);
  return rules;
}

DispatcherOptions DispatchOf(const HttpServerOptions& options) {
  DispatcherOptions dispatch;
  dispatch.api_keys = options.api_keys;
  dispatch.origins = RulesOf(options);
  dispatch.health.stall_seconds = options.stall_seconds;
  dispatch.most_body_bytes = options.most_body_bytes;
  dispatch.extra = options.extra;
  for (ExtraRoute& route : PageRoutes()) dispatch.extra.push_back(std::move(route));
  return dispatch;
}

ServedModel ModelOf(const HttpServerOptions& options, const HttpServer::Parts& parts,
                    const Clock& clock, IdSource& ids) {
  ServedModel model;
  model.name = options.model_name;
  model.created = UnixSeconds();
  model.engine = parts.engine;
  model.tokenizer = parts.tokenizer;
  model.chat = parts.chat;
  model.constraints = parts.constraints;
  model.fleet = parts.fleet;
  model.sampler = options.sampler;
  model.clock = &clock;
  model.ids = &ids;
  return model;
}

}  // namespace

HttpServer::HttpServer(const HttpServerOptions& options, const Parts& parts, const Clock& clock,
                       Logger& logger)
    : ids_(options.seed),
      dispatcher_(ModelOf(options, parts, clock, ids_), DispatchOf(options), logger),
      keys_(options.api_keys) {}

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const HttpServerOptions& options,
                                                              const Parts& parts,
                                                              const Clock& clock, Logger& logger) {
  RETURN_IF_ERROR(CheckOptions(options));
  RETURN_IF_ERROR(CheckReach(options));
  std::unique_ptr<HttpServer> server(new HttpServer(options, parts, clock, logger));
  RETURN_IF_ERROR(server->Listen(options, clock, logger));
  return server;
}

absl::Status HttpServer::Listen(const HttpServerOptions& options, const Clock& clock,
                                Logger& logger) {
  ListenerOptions listen;
  listen.host = options.host;
  listen.port = options.port;
  listen.threads = static_cast<size_t>(options.most_connections);
  listen.most_body_bytes = static_cast<size_t>(options.most_body_bytes);
  listen.head_timeout = Milliseconds(options.head_timeout_seconds);
  listen.body_timeout = Milliseconds(options.body_timeout_seconds);
  listen.write_timeout = Milliseconds(options.write_timeout_seconds);
  listen.idle_timeout = Milliseconds(options.idle_timeout_seconds);
  ListenerHandlers handlers;
  handlers.refuse = [this](const HttpRequest& head, int64_t bytes) {
    return dispatcher_.Refuse(head, bytes);
  };
  handlers.handle = [this](const HttpRequest& request, ClientWatch& watch) {
    return dispatcher_.Handle(request, watch);
  };
  handlers.broken = [this](const HttpRequest& head, int status, const std::string& message) {
    return dispatcher_.Broken(head, status, message);
  };
  handlers.next_id = [this] { return dispatcher_.NextId(); };
  handlers.connections = [this](int change) { dispatcher_.counters().AddConnections(change); };
  ASSIGN_OR_RETURN(listener_, HttpListener::Start(listen, handlers, clock));

  if (!options.health_host.empty()) listen.host = options.health_host;
  listen.port = options.health_port >= 0 ? options.health_port
                : options.port == 0      ? 0
                                         : options.port + 1;
  listen.threads = kHealthThreads;
  listen.cut_slow_clients = true;  // whoever reaches the port may idle, and probes must not wait
  listen.most_body_bytes = 0;
  // It starts no work, and probes have no keys.
  const bool open = options.api_keys.empty() || IsLoopback(listen.host);
  ASSIGN_OR_RETURN(metrics_access_,
                   MetricsAccess::Create(options.metrics_token_file, open, &logger));
  handlers.refuse = [this](const HttpRequest& head, int64_t) { return Probe(head); };
  handlers.connections = [](int) {};
  ASSIGN_OR_RETURN(health_listener_, HttpListener::Start(listen, std::move(handlers), clock));
  return absl::OkStatus();
}

std::optional<HttpReply> HttpServer::Probe(const HttpRequest& head) {
  if (head.path == "/metrics" && !keys_.Find(head.authorization).has_value()) {
    std::optional<HttpReply> refusal = metrics_access_->Refuse(head);
    if (refusal.has_value()) {
      // Keys are there, or it would be open: one of them serves, too.
      if (refusal->status == 403) {
        refusal = TextReply(
            401, "want an API key, or the token of --metrics-token-file, as Authorization: Bearer");
        refusal->headers.emplace_back("WWW-Authenticate", "Bearer");
      }
      return refusal;
    }
  }
  return dispatcher_.Probe(head);
}

HttpServer::~HttpServer() = default;

}  // namespace weft
