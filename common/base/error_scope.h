// What an error took with it, beside its code: carried by the status itself, so that whoever shows
// it need not read its text.
#pragma once

#include "absl/status/status.h"

namespace weft {

enum class ErrorScope {
  kRequest,  // what was asked for; the default
  kWorker,   // a worker process or the way to it
};

// The same status, with that scope. OK stays OK.
absl::Status WithScope(absl::Status status, ErrorScope scope);
ErrorScope ScopeOf(const absl::Status& status);

}  // namespace weft
