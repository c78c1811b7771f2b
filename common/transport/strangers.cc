#include "common/transport/strangers.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"

namespace weft {
namespace {

constexpr int kFirstLines = 5;
constexpr std::chrono::seconds kPeriod{10};

}  // namespace

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

void RefusalLog::Add(std::string_view who, std::string_view why) {
  ++count_;
  if (logger_ == nullptr) return;
  const Clock::TimePoint now = clock_.Now();
  // The first period has room for more lines than the later ones.
  if (count_ > 1 && now - since_ >= kPeriod) {
    since_ = now;
    lines_ = kFirstLines - 1;
  } else if (count_ == 1) {
    since_ = now;
  }
  if (lines_ >= kFirstLines) {
    ++unsaid_;
    return;
  }
  ++lines_;
  std::string line =
      absl::StrCat(AbslView(what_), " from ", who.empty() ? "somewhere" : AbslView(who),
                   " was refused: ", AbslView(why));
  if (unsaid_ > 0) absl::StrAppend(&line, " (and ", unsaid_, " others before it)");
  unsaid_ = 0;
  logger_->Warning(line);
}

}  // namespace weft
