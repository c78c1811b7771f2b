#include "coordinator/http/dispatcher.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/escaped_text.h"
#include "common/base/status_macros.h"
#include "coordinator/http/api_error.h"
#include "coordinator/http/chat_handler.h"
#include "coordinator/http/completion_handler.h"
#include "coordinator/http/embedding_handler.h"
#include "coordinator/http/fleet_handler.h"
#include "coordinator/http/metrics.h"
#include "coordinator/http/model_handlers.h"
#include "coordinator/http/reply_json.h"

namespace weft {
namespace {

constexpr size_t kShownBytes = 200;
constexpr char kModels[] = "/v1/models";

// An error that no status stands for.
HttpReply PlainError(int http_status, const std::string& message, const std::string& code) {
  ApiError error;
  error.http_status = http_status;
  error.message = message;
  error.type = "invalid_request_error";
  error.code = code;
  HttpReply reply = JsonReply(ApiErrorJson(error));
  reply.status = http_status;
  return reply;
}

bool IsJson(std::string_view content_type) {
  const std::string_view type = content_type.substr(0, content_type.find(';'));
  return absl::EqualsIgnoreCase(absl::StripAsciiWhitespace(AbslView(type)), "application/json");
}

std::string LogText(const HttpRequest& head, int status) {
  return absl::StrCat("http ", head.id, " ", EscapedText(head.address, kShownBytes), " ",
                      EscapedText(head.method, kShownBytes), " ",
                      EscapedText(head.path, kShownBytes), " ", status);
}

}  // namespace

Dispatcher::Dispatcher(ServedModel model, DispatcherOptions options, Logger& logger)
    : model_(std::move(model)),
      options_(std::move(options)),
      keys_(options_.api_keys),
      logger_(logger) {
  AddApiRoutes();
  AddHealthRoutes();
  for (const ExtraRoute& extra : options_.extra) {
    routes_.push_back({.method = "GET",
                       .path = extra.path,
                       .needs_key = extra.needs_key,
                       .handler = [&extra](const HttpRequest&, ClientWatch&) {
                         HttpReply reply;
                         reply.content_type = extra.content_type;
                         reply.body = extra.body();
                         reply.headers = extra.headers;
                         return reply;
                       }});
  }
}

void Dispatcher::AddApiRoutes() {
  const auto post = [&](const char* path, bool starts_work, auto handle) {
    routes_.push_back(
        {.method = "POST", .path = path, .starts_work = starts_work, .handler = handle});
  };
  post("/v1/chat/completions", true, [this](const HttpRequest& request, ClientWatch& watch) {
    return HandleChat(model_, request, ClientOf(request), watch);
  });
  post("/v1/completions", true, [this](const HttpRequest& request, ClientWatch& watch) {
    return HandleCompletion(model_, request, ClientOf(request), watch);
  });
  post("/v1/embeddings", true, [this](const HttpRequest& request, ClientWatch& watch) {
    return HandleEmbeddings(model_, request, ClientOf(request), watch);
  });
  post("/tokenize", false, [this](const HttpRequest& request, ClientWatch&) {
    return HandleTokenize(model_, request);
  });
  post("/detokenize", false, [this](const HttpRequest& request, ClientWatch&) {
    return HandleDetokenize(model_, request);
  });
  routes_.push_back(
      {.method = "GET", .path = kModels, .handler = [this](const HttpRequest&, ClientWatch&) {
         return HandleModels(model_);
       }});
  routes_.push_back(
      {.method = "GET", .path = "/v1/fleet", .handler = [this](const HttpRequest&, ClientWatch&) {
         return HandleFleet(model_, health());
       }});
  routes_.push_back({.method = "GET",
                     .path = absl::StrCat(kModels, "/"),
                     .prefix = true,
                     .handler = [this](const HttpRequest& request, ClientWatch&) {
                       return HandleModel(model_, request.path.substr(sizeof(kModels)));
                     }});
}

void Dispatcher::AddHealthRoutes() {
  const auto get = [&](const char* path, bool needs_key, auto reply) {
    routes_.push_back({.method = "GET",
                       .path = path,
                       .needs_key = needs_key,
                       .handler = [reply](const HttpRequest&, ClientWatch&) { return reply(); }});
  };
  get("/livez", false, [] { return LiveReply(); });
  get("/readyz", false, [this] { return ReadyReply(health()); });
  get("/healthz", true, [this] { return HealthReply(health(), model_.engine->state()); });
  get("/metrics", true,
      [this] { return MetricsReply(MetricsText(model_.engine->state(), health(), counters_)); });
}

Health Dispatcher::health() const {
  return HealthOf(model_.engine->state(), draining_, options_.health, model_.clock->Now());
}

const Dispatcher::Route* Dispatcher::Find(const HttpRequest& head, std::string& allowed) const {
  const std::string method = head.method == "HEAD" ? "GET" : head.method;
  for (const Route& route : routes_) {
    const bool here =
        route.prefix ? absl::StartsWith(head.path, route.path) : head.path == route.path;
    if (!here) continue;
    if (route.method == method) return &route;
    absl::StrAppend(&allowed, allowed.empty() ? "" : ", ", route.method);
  }
  return nullptr;
}

absl::Status Dispatcher::CheckHead(const HttpRequest& head, const Route& route,
                                   int64_t body_bytes) const {
  RETURN_IF_ERROR(CheckOrigin(options_.origins, head.origin, head.host));
  if (route.needs_key && !keys_.empty() && !keys_.Find(head.authorization)) {
    return absl::UnauthenticatedError(
        "want a header 'Authorization: Bearer KEY' with a key of this server");
  }
  if (!route.starts_work || body_bytes > options_.most_body_bytes) return absl::OkStatus();
  if (draining_) return absl::UnavailableError("the server is shutting down");
  const ServingState state = model_.engine->state();
  if (state.ready) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      "the model is not ready: ", state.trouble.empty() ? "it is being opened" : state.trouble));
}

std::optional<HttpReply> Dispatcher::Refuse(const HttpRequest& head, int64_t body_bytes) {
  std::string allowed;
  const Route* route = Find(head, allowed);
  if (route == nullptr) {
    if (head.method == "OPTIONS" && !allowed.empty()) {
      return Finish(head, "preflight", Preflight(head, allowed));
    }
    HttpReply reply =
        allowed.empty()
            ? PlainError(404, absl::StrCat("there is no ", EscapedText(head.path, kShownBytes)),
                         "not_found")
            : PlainError(405, absl::StrCat("want ", allowed), "method_not_allowed");
    if (!allowed.empty()) reply.headers.emplace_back("Allow", allowed);
    return Finish(head, "other", std::move(reply));
  }
  const absl::Status status = CheckHead(head, *route, body_bytes);
  if (!status.ok()) return Finish(head, route->path, ErrorReply(status));
  if (route->method != "POST") return std::nullopt;
  if (body_bytes > options_.most_body_bytes) {
    return Finish(head, route->path,
                  PlainError(413,
                             absl::StrCat("the body has ", body_bytes, " bytes, the limit is ",
                                          options_.most_body_bytes),
                             "body_too_large"));
  }
  if (!IsJson(head.content_type)) {
    return Finish(head, route->path,
                  PlainError(415, "want a body with Content-Type: application/json",
                             "unsupported_media_type"));
  }
  return std::nullopt;
}

HttpReply Dispatcher::Handle(const HttpRequest& request, ClientWatch& watch) {
  std::string allowed;
  const Route* route = Find(request, allowed);
  if (route == nullptr) return Broken(request, 404, "there is no such path");
  return Finish(request, route->path, route->handler(request, watch));
}

HttpReply Dispatcher::Broken(const HttpRequest& head, int http_status, const std::string& message) {
  std::string allowed;
  const Route* route = Find(head, allowed);
  const std::string word = http_status == 413 ? "body_too_large" : "bad_request";
  return Finish(head, route != nullptr ? route->path : "other",
                PlainError(http_status, message, word));
}

std::optional<HttpReply> Dispatcher::Probe(const HttpRequest& head) {
  if (head.method != "GET" && head.method != "HEAD") {
    HttpReply reply = PlainError(405, "want GET", "method_not_allowed");
    reply.headers.emplace_back("Allow", "GET");
    return reply;
  }
  if (head.path == "/livez") return LiveReply();
  if (head.path == "/readyz") return ReadyReply(health());
  if (head.path == "/healthz") return HealthReply(health(), model_.engine->state());
  if (head.path == "/metrics") {
    return MetricsReply(MetricsText(model_.engine->state(), health(), counters_));
  }
  return PlainError(404, absl::StrCat("there is no ", EscapedText(head.path, kShownBytes)),
                    "not_found");
}

std::string Dispatcher::ClientOf(const HttpRequest& request) const {
  const std::optional<size_t> key = keys_.Find(request.authorization);
  return key ? absl::StrCat("key ", *key) : request.address;
}

HttpReply Dispatcher::Preflight(const HttpRequest& head, const std::string& allowed) const {
  HttpReply reply;
  reply.status = 204;
  reply.headers.emplace_back("Allow", allowed);
  if (AllowsOrigin(options_.origins, head.origin)) {
    reply.headers.emplace_back("Access-Control-Allow-Methods", allowed);
    reply.headers.emplace_back("Access-Control-Allow-Headers", "authorization, content-type");
    reply.headers.emplace_back("Access-Control-Max-Age", "600");
  }
  return reply;
}

HttpReply Dispatcher::Finish(const HttpRequest& head, const std::string& route, HttpReply reply) {
  reply.headers.emplace_back("X-Request-Id", head.id);
  reply.headers.emplace_back("X-Content-Type-Options", "nosniff");
  if (AllowsOrigin(options_.origins, head.origin)) {
    reply.headers.emplace_back("Access-Control-Allow-Origin", head.origin);
    reply.headers.emplace_back("Vary", "Origin");
  }
  counters_.Count(route, reply.status);
  logger_.Debug(LogText(head, reply.status));
  return reply;
}

}  // namespace weft
