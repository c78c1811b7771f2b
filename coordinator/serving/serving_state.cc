#include "coordinator/serving/serving_state.h"

namespace weft {

void ServingCounters::CountEnd(const absl::Status& status) {
  ++(status.ok() ? finished : absl::IsCancelled(status) ? cancelled : failed);
}

}  // namespace weft
