#include "rpc_backend/protocol/embedded_message.h"

#include "absl/strings/str_cat.h"
#include "rpc_backend/protocol/field_error.h"
#include "rpc_backend/protocol/message_check.h"

namespace weft {

absl::Status ParseEmbedded(absl::string_view what, std::string_view bytes, const WireLimits& limits,
                           google::protobuf::Message& message) {
  if (static_cast<int64_t>(bytes.size()) > limits.embedded_message_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat("a ", what, " of ", bytes.size(),
                                                     " bytes, at most ",
                                                     limits.embedded_message_bytes, " travel"));
  }
  const absl::Status status = CheckMessageBytes(*message.GetDescriptor(), bytes, limits);
  if (!status.ok()) return InPlace(what, status);
  if (message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, ": not a message, or text that is no UTF-8"));
}

}  // namespace weft
