#include "common/transport/strangers.h"

#include <map>

namespace weft {

size_t StrangerToDrop(absl::Span<const std::string> hosts) {
  struct Host {
    size_t first = 0;
    int64_t count = 0;
  };
  std::map<std::string_view, Host> by_name;
  for (size_t i = 0; i < hosts.size(); ++i) {
    Host& host = by_name.try_emplace(hosts[i], Host{i, 0}).first->second;
    ++host.count;
  }
  Host most;
  for (const auto& [name, host] : by_name) {
    if (host.count > most.count || (host.count == most.count && host.first < most.first)) {
      most = host;
    }
  }
  return most.first;
}

std::string_view HostOf(std::string_view socket_address) {
  return socket_address.substr(0, socket_address.rfind(':'));
}

}  // namespace weft
