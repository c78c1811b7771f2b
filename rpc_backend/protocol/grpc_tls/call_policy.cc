#include "rpc_backend/protocol/grpc_tls/call_policy.h"

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/escaped_text.h"

namespace weft {
namespace {

constexpr size_t kMaxPathBytes = 200;
constexpr size_t kMaxNameBytes = 256;

constexpr std::string_view kForWorkers[] = {
    "/weft.proto.WorkerData/Messages", "/weft.proto.Membership/Challenge",
    "/weft.proto.Membership/Join", "/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch"};

}  // namespace

absl::Status CheckCall(std::string_view path, TlsRole role, std::string_view certificate) {
  if (role == TlsRole::kCoordinator) return absl::OkStatus();
  for (const std::string_view allowed : kForWorkers) {
    if (role == TlsRole::kWorker && path == allowed) return absl::OkStatus();
  }
  return absl::PermissionDeniedError(
      absl::StrCat("certificate '", EscapedText(certificate, kMaxNameBytes), "' has the role ",
                   AbslView(RoleText(role)), " and may not call ", EscapedText(path, kMaxPathBytes),
                   ": that is for the role ",
                   role == TlsRole::kWorker ? "coordinator" : "coordinator or worker"));
}

}  // namespace weft
