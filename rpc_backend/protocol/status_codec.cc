#include "rpc_backend/protocol/status_codec.h"

#include "common/base/absl_view.h"
#include "rpc_backend/protocol/clean_text.h"

namespace weft {
namespace {

constexpr int64_t kHighestCode = static_cast<int64_t>(absl::StatusCode::kUnauthenticated);

}  // namespace

int WireCode(const absl::Status& status) { return static_cast<int>(status.code()); }

std::string WireMessage(const absl::Status& status, const WireLimits& limits) {
  return CleanText(StdView(status.message()), limits.reason_bytes);
}

absl::Status StatusFromWire(int64_t code, std::string_view message, const WireLimits& limits) {
  if (code == 0) return absl::OkStatus();
  const bool known = code > 0 && code <= kHighestCode;
  return absl::Status(known ? static_cast<absl::StatusCode>(code) : absl::StatusCode::kUnknown,
                      CleanText(message, limits.reason_bytes));
}

}  // namespace weft
