// What gRPC does not tell its callers of handshakes, asked by connecting once more without it: why
// a connection failed, and which certificate the other side shows.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/host_address.h"
#include "common/tls/tls_folder.h"

namespace weft {

struct TlsExplanation {
  std::string text;  // one sentence for people; empty where there is nothing to say
  // The other side was seen to want something else than this one offers: asking again is no use
  // before somebody changes that.
  bool certain = false;
};

// Who should be at the other end.
struct ExpectedPeer {
  TlsRole role = TlsRole::kWorker;
  std::string name;  // that its certificate has; empty: the host that is connected to
};

// Nothing where nobody listens, or all is well. `own` is what this side connects with; null:
// plaintext. Takes until `deadline` at most, and a look-up of the name.
TlsExplanation ExplainTlsFailure(const HostAddress& address, const ExpectedPeer& peer,
                                 const TlsFolder* own, const Clock& clock,
                                 Clock::TimePoint deadline);

// What the certificate says that the TLS server at `address` shows now to whoever connects with
// `own`; whose authority it is from is not looked at. UNAVAILABLE where there is no handshake by
// `deadline`.
absl::StatusOr<CertificateFacts> ReadServerCertificate(const HostAddress& address,
                                                       const TlsFolder& own, const Clock& clock,
                                                       Clock::TimePoint deadline);

}  // namespace weft
