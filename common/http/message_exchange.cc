#include "common/http/message_exchange.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"

namespace weft {
namespace {

class DataSinkAdapter final : public ByteSink {
 public:
  explicit DataSinkAdapter(httplib::DataSink& sink) : sink_(sink) {}
  bool Write(std::string_view bytes) override {
    open_ = open_ && sink_.write(bytes.data(), bytes.size());
    return open_;
  }
  bool open() const { return open_; }

 private:
  httplib::DataSink& sink_;
  bool open_ = true;
};

// Whether a proxy in front might see where the body ends elsewhere than we do.
bool HasUnclearLength(const httplib::Request& request) {
  const size_t lengths = request.get_header_value_count("Content-Length");
  if (lengths > 1 || request.get_header_value_count("Transfer-Encoding") > 1) return true;
  const bool chunked = request.has_header("Transfer-Encoding");
  if (chunked) {
    return lengths > 0 || request.get_header_value("Transfer-Encoding") != "chunked";
  }
  return lengths == 1 && AnnouncedBytes(request) < 0;
}

}  // namespace

int64_t AnnouncedBytes(const httplib::Request& request) {
  if (request.has_header("Transfer-Encoding")) return -1;
  if (!request.has_header("Content-Length")) return 0;
  int64_t bytes = 0;
  const std::string text = request.get_header_value("Content-Length");
  const bool digits =
      std::all_of(text.begin(), text.end(), [](unsigned char c) { return absl::ascii_isdigit(c); });
  return digits && absl::SimpleAtoi(text, &bytes) ? bytes : -1;
}

bool SaysLength(const httplib::Request& request) {
  return request.has_header("Transfer-Encoding") || request.has_header("Content-Length");
}

const char* HeadFault(const httplib::Request& request) {
  if (HasUnclearLength(request)) return "the length of the body is unclear";
  const size_t hosts = request.get_header_value_count("Host");
  if (hosts > 1) return "there is more than one Host";
  if (hosts == 0 && request.version != "HTTP/1.0") return "there is no Host";
  for (const auto& [name, value] : request.headers) {
    for (const unsigned char c : value) {
      if (absl::ascii_iscntrl(c) && c != '\t') return "a header has control characters";
    }
  }
  return nullptr;
}

HttpRequest HeadOf(const httplib::Request& request, std::string id) {
  HttpRequest head;
  head.method = request.method;
  head.path = request.path;
  head.content_type = request.get_header_value("Content-Type");
  head.authorization = request.get_header_value("Authorization");
  head.origin = request.get_header_value("Origin");
  head.host = request.get_header_value("Host");
  head.address = request.remote_addr;
  head.id = std::move(id);
  return head;
}

void SetReply(HttpReply reply, const httplib::Request& request, httplib::Response& response) {
  response.status = reply.status;
  for (const auto& [name, value] : reply.headers) response.set_header(name, value);
  if (!reply.stream) {
    if (reply.status != 204) response.set_content(reply.body, reply.content_type);
    return;
  }
  auto provide = [stream = std::move(reply.stream)](size_t, httplib::DataSink& sink) {
    DataSinkAdapter adapter(sink);
    stream(adapter);
    if (adapter.open()) sink.done();
    return adapter.open();
  };
  if (request.version == "HTTP/1.0") {
    response.set_content_provider(reply.content_type, std::move(provide));
  } else {
    response.set_chunked_content_provider(reply.content_type, std::move(provide));
  }
}

}  // namespace weft
