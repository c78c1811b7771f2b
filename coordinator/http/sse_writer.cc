#include "coordinator/http/sse_writer.h"

#include "absl/strings/str_cat.h"
#include "coordinator/http/api_error.h"

namespace weft {

bool SseWriter::Event(const Json& json) {
  return Write(absl::StrCat("data: ", JsonText(json), "\n\n"));
}

bool SseWriter::KeepAlive() { return Write(": still here\n\n"); }

bool SseWriter::Done() { return Write("data: [DONE]\n\n"); }

bool SseWriter::Write(const std::string& bytes) {
  open_ = open_ && sink_.Write(bytes);
  return open_;
}

}  // namespace weft
