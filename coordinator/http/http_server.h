// The server of `weft serve`: the API on one port, health and metrics on another with threads of
// their own, so that no number of streams keeps the probes waiting.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/http/http_listener.h"
#include "common/http/metrics_access.h"
#include "coordinator/http/api_keys.h"
#include "coordinator/http/dispatcher.h"
#include "coordinator/http/served_model.h"

namespace weft {

struct HttpServerOptions {
  std::string host = "127.0.0.1";
  int port = 8080;       // 0: any free one
  int health_port = -1;  // -1: the next after `port`, or any free one if that is 0; 0: any free one
  std::string health_host;            // empty: as `host`
  std::string model_name;             // as /v1/models lists it
  std::vector<std::string> api_keys;  // empty: everybody may use the API
  bool no_api_key = false;            // on other addresses than loopback ones, too
  std::string metrics_token_file;     // whose token, or an API key, the health port's /metrics want
  std::vector<std::string> cors_origins;
  std::vector<std::string> allowed_hosts;  // beside loopback names, where there are no keys
  SamplerOptions sampler;                  // of requests that say nothing else
  int64_t most_connections = 1024;
  int64_t most_body_bytes = int64_t{8} << 20;
  double stall_seconds = 30;  // see HealthOptions
  double head_timeout_seconds = 10;
  double body_timeout_seconds = 60;
  double write_timeout_seconds = 30;
  double idle_timeout_seconds = 10;
  uint64_t seed = 0;  // of names and of samplers whose request has none: random
  std::vector<ExtraRoute> extra;
};

// INVALID_ARGUMENT, with what to do, where others than this machine could use the API without a key
// and nobody said that they may.
absl::Status CheckReach(const HttpServerOptions& options);

class HttpServer {
 public:
  // Listens when it returns. `engine`, `tokenizer`, `chat` (may be null: no chat), `constraints`
  // (may be null: none), `fleet` (may be null: not shown), `clock` and `logger` outlive it. Errors:
  // INVALID_ARGUMENT for options; UNAVAILABLE with the address where it cannot listen.
  struct Parts {
    TextEngine* engine = nullptr;
    const Tokenizer* tokenizer = nullptr;
    const ChatFormat* chat = nullptr;
    const OutputConstraints* constraints = nullptr;
    const FleetView* fleet = nullptr;
  };
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const HttpServerOptions& options,
                                                           const Parts& parts, const Clock& clock,
                                                           Logger& logger);
  // Cuts all connections.
  ~HttpServer();

  // Refuses new work with 503 and is not ready any longer; what is under way goes on.
  void Drain() { dispatcher_.Drain(); }

  // Until the replies to what was under way are written. False: not by `deadline`.
  bool AwaitReplies(Clock::TimePoint deadline) { return listener_->AwaitReplies(deadline); }

  int port() const { return listener_->port(); }
  int health_port() const { return health_listener_->port(); }

 private:
  HttpServer(const HttpServerOptions& options, const Parts& parts, const Clock& clock,
             Logger& logger);
  absl::Status Listen(const HttpServerOptions& options, const Clock& clock, Logger& logger);
  // A request on the port for health.
  std::optional<HttpReply> Probe(const HttpRequest& head);

  IdSource ids_;
  Dispatcher dispatcher_;
  const ApiKeys keys_;
  std::unique_ptr<MetricsAccess> metrics_access_;
  std::unique_ptr<HttpListener> listener_;
  std::unique_ptr<HttpListener> health_listener_;
};

}  // namespace weft
