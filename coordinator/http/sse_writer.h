// Server-sent events, as OpenAI's streams use them: one line of data each.
// Source: WHATWG HTML, "Server-sent events".
#pragma once

#include "common/http/http_message.h"
#include "coordinator/json/checked_json.h"

namespace weft {

class SseWriter {
 public:
  explicit SseWriter(ByteSink& sink) : sink_(sink) {}

  // False, here and from then on: nobody reads any longer.
  bool Event(const Json& json);
  // What readers skip: shows those between here and the client that the stream is alive.
  bool KeepAlive();
  // "data: [DONE]".
  bool Done();

 private:
  bool Write(const std::string& bytes);

  ByteSink& sink_;
  bool open_ = true;
};

}  // namespace weft
