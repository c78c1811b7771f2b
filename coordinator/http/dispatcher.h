// From a request to the handler of its route: routes, keys, origins, and what every reply has.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/http/http_message.h"
#include "coordinator/http/api_keys.h"
#include "coordinator/http/health_report.h"
#include "coordinator/http/origin_check.h"
#include "coordinator/http/request_counters.h"
#include "coordinator/http/served_model.h"

namespace weft {

// A page or its data, served beside the API.
struct ExtraRoute {
  std::string path;
  std::string content_type;
  bool needs_key = true;
  std::function<std::string()> body;  // any thread
  std::vector<std::pair<std::string, std::string>> headers = {};
};

struct DispatcherOptions {
  std::vector<std::string> api_keys;
  OriginRules origins;
  HealthOptions health;
  int64_t most_body_bytes = int64_t{8} << 20;
  std::vector<ExtraRoute> extra;
};

// Any thread.
class Dispatcher {
 public:
  // What `model` points to and `logger` outlive it.
  Dispatcher(ServedModel model, DispatcherOptions options, Logger& logger);

  // Looks at a request without its body, of which `body_bytes` are announced (-1: nobody knows). A
  // reply here means that the body is not read.
  std::optional<HttpReply> Refuse(const HttpRequest& head, int64_t body_bytes);
  // The whole request, which Refuse let pass.
  HttpReply Handle(const HttpRequest& request, ClientWatch& watch);
  // What was wrong with a request that could not be read: a reply for everybody who carries it.
  HttpReply Broken(const HttpRequest& head, int http_status, const std::string& message);

  // Only the paths of health and metrics, without keys: for the listener that serves nothing else.
  std::optional<HttpReply> Probe(const HttpRequest& head);

  // Refuses what would start work from now on.
  void Drain() { draining_ = true; }
  Health health() const;

  int64_t most_body_bytes() const { return options_.most_body_bytes; }
  std::string NextId() { return model_.ids->NextName("req-"); }
  RequestCounters& counters() { return counters_; }

 private:
  struct Route {
    std::string method;
    std::string path;
    bool prefix = false;  // everything that begins with path
    bool needs_key = true;
    bool starts_work = false;  // refused while the server cannot do it
    HttpHandler handler;
  };

  void AddApiRoutes();
  void AddHealthRoutes();
  const Route* Find(const HttpRequest& head, std::string& allowed) const;
  absl::Status CheckHead(const HttpRequest& head, const Route& route, int64_t body_bytes) const;
  std::string ClientOf(const HttpRequest& request) const;
  // Adds what every reply has, and counts it.
  HttpReply Finish(const HttpRequest& head, const std::string& route, HttpReply reply);
  HttpReply Preflight(const HttpRequest& head, const std::string& allowed) const;

  const ServedModel model_;
  const DispatcherOptions options_;
  const ApiKeys keys_;
  Logger& logger_;
  std::vector<Route> routes_;
  std::atomic<bool> draining_ = false;
  RequestCounters counters_;
};

}  // namespace weft
