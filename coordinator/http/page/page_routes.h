// The page at /: chat and fleet, in files of this program alone.
#pragma once

#include <vector>

#include "coordinator/http/dispatcher.h"

namespace weft {

// "/", "/page.css", "/page.js", "/page.svg": for everybody, with a policy under which a browser
// runs, loads and asks nothing but what this server serves. The data that the page shows has routes
// and keys of its own.
std::vector<ExtraRoute> PageRoutes();

}  // namespace weft
