#include "coordinator/cli/exit_code.h"

#include "common/base/error_scope.h"

namespace weft {

int ExitCode(const absl::Status& status) {
  if (ScopeOf(status) == ErrorScope::kWorker) return kExitWorkerLost;
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return 0;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kUnimplemented:
      return kExitUsage;
    default:
      return 1;
  }
}

}  // namespace weft
