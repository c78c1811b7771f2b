// What a server shows of the machines behind it.
#pragma once

#include "coordinator/json/checked_json.h"

namespace weft {

// Any thread.
class FleetView {
 public:
  virtual ~FleetView() = default;
  // The plan of the present session, as docs/serving.md says under GET /v1/fleet; null while there
  // is no session. Texts are UTF-8.
  virtual Json Plan() const = 0;
};

}  // namespace weft
