// A filter of tokens that follows one continuation.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "coordinator/sampling/token_filter.h"

namespace weft {

class TokenConstraint : public TokenFilter {
 public:
  // The token was chosen; the filter let it pass. Errors: a limit is reached.
  virtual absl::Status Accept(int32_t token) = 0;
};

}  // namespace weft
