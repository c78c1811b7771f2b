// JSON as models are shown it.
#pragma once

#include <string>

#include "coordinator/json/checked_json.h"

namespace weft {

// JSON in one line as Python writes it: ", " and ": " between things, characters beyond ASCII as
// they are. What lies deeper than ParseJson() takes by default comes without the blanks.
std::string JsonLine(const Json& json);

}  // namespace weft
