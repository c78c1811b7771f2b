#include "rpc_backend/protocol/grpc_tls/grpc_process.h"

#include <errno.h>
#include <grpc/support/log.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "common/base/clock.h"
#include "common/base/escaped_text.h"
#include "common/base/line_budget.h"
#include "common/base/mutex.h"

namespace weft {
namespace {

constexpr char kCiphersVariable[] = "GRPC_SSL_CIPHER_SUITES";
// With a key that both sides were given beforehand, which nobody is. TLS 1.3 has a list of its own.
constexpr char kUnusableCipher[] = "PSK-AES256-GCM-SHA384";

constexpr size_t kMaxLineBytes = 500;

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// What OpenSSL said at the end of the line, in words where the other side may be a stranger.
std::string Reworded(std::string_view text) {
  if (!Contains(text, "Handshake failed")) return "gRPC: " + EscapedText(text, kMaxLineBytes);
  const size_t colon = text.rfind("::");
  const std::string_view reason =
      colon == std::string_view::npos ? text : text.substr(colon + 2, text.size() - colon - 2);
  std::string line = "TLS: a handshake failed: " + EscapedText(reason, kMaxLineBytes);
  if (Contains(reason, "certificate verify failed")) {
    line += " The other side's certificate is not from ca.crt, or its dates are not now.";
  } else if (Contains(reason, "did not return a certificate")) {
    line += " The other side has no certificate.";
  }
  return line;
}

// A connection that was given up while it was made, of which says so who gave it up; a client that
// calls the server by another name, which is the client's business.
bool SaysNothing(std::string_view text) {
  return Contains(text, "cancel_check_peer") || Contains(text, "No match found for server name");
}

// Strangers can make gRPC say something with each connection. Its log has no object to keep this.
struct LogState {
  Mutex mutex;
  LineBudget budget ABSL_GUARDED_BY(mutex);
};

void WriteLine(gpr_log_func_args* arguments) {
  if (arguments->severity != GPR_LOG_SEVERITY_ERROR) return;
  const std::string_view text = arguments->message;
  if (SaysNothing(text)) return;
  static LogState state;
  int64_t left_out = 0;
  {
    MutexLock lock(state.mutex);
    if (!state.budget.Take(SystemClock().Now(), left_out)) return;
  }
  std::string line = std::string(program_invocation_short_name) + ": warning: " + Reworded(text);
  if (left_out > 0) line += " (and " + std::to_string(left_out) + " other lines of gRPC before it)";
  line += "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace

void PrepareGrpcProcess() {
  setenv(kCiphersVariable, kUnusableCipher, 1);  // NOLINT(concurrency-mt-unsafe): before threads
  gpr_set_log_function(WriteLine);
}

absl::Status CheckGrpcProcess() {
  const char* const ciphers = std::getenv(kCiphersVariable);
  if (ciphers != nullptr && std::string_view(ciphers) == kUnusableCipher) return absl::OkStatus();
  return absl::FailedPreconditionError("TLS without PrepareGrpcProcess: 1.2 would be possible");
}

}  // namespace weft
