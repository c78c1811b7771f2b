// A few pages that probes and scrapers read, on threads of their own.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/http/http_listener.h"
#include "common/http/http_message.h"

namespace weft {

class ProbeServer {
 public:
  // By path. Called on any thread, several at a time.
  using Pages = std::map<std::string, std::function<HttpReply()>>;
  // Asked before a page is: a reply is sent in its place. Called as they are.
  using Guard = std::function<std::optional<HttpReply>(const HttpRequest&)>;

  // Listens when it returns; port 0: any free one. Takes GET and HEAD, and no bodies. `clock` and
  // what pages refer to outlive it. Errors: as HttpListener::Start.
  static absl::StatusOr<std::unique_ptr<ProbeServer>> Start(const std::string& host, int port,
                                                            Pages pages, const Clock& clock,
                                                            Guard guard = {});
  ~ProbeServer();

  int port() const { return listener_->port(); }

 private:
  ProbeServer(Pages pages, Guard guard) : pages_(std::move(pages)), guard_(std::move(guard)) {}
  HttpReply Answer(const HttpRequest& request) const;

  const Pages pages_;
  const Guard guard_;
  std::unique_ptr<HttpListener> listener_;
};

}  // namespace weft
