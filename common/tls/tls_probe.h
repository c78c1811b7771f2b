// Why a connection to a worker failed, asked by connecting once more without gRPC, which tells its
// callers little of handshakes.
#pragma once

#include <string>

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

}  // namespace weft
