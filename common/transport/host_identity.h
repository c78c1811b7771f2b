// Whether two processes can share memory.
#pragma once

#include <string>

namespace weft {

// A word that is equal in two processes exactly if they run on the same boot of one machine with
// the same network, process and shared-memory namespaces and the same user: then they reach each
// other by shared memory. Unique to this process where the system does not tell.
std::string HostIdentity();

}  // namespace weft
