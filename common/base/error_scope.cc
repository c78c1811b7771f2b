#include "common/base/error_scope.h"

#include "absl/strings/cord.h"

namespace weft {
namespace {

constexpr const char* kUrl = "weft/error_scope";
constexpr const char* kWorkerText = "worker";

}  // namespace

absl::Status WithScope(absl::Status status, ErrorScope scope) {
  if (scope == ErrorScope::kWorker) {
    status.SetPayload(kUrl, absl::Cord(kWorkerText));
  } else {
    status.ErasePayload(kUrl);
  }
  return status;
}

ErrorScope ScopeOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kUrl);
  return payload && *payload == kWorkerText ? ErrorScope::kWorker : ErrorScope::kRequest;
}

}  // namespace weft
