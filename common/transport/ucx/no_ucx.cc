// The twin of ucx_transport.cc for builds without UCX.
#include "common/transport/ucx/ucx_transport.h"

namespace weft {

absl::StatusOr<std::unique_ptr<Transport>> NewUcxTransport(const UcxTransportOptions& /*options*/) {
  return absl::UnimplementedError("this build has no UCX (libucx-dev was not installed)");
}

}  // namespace weft
