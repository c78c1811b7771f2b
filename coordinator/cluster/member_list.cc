#include "coordinator/cluster/member_list.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace weft {

bool MemberList::Renew(const std::string& identity, const std::string& address,
                       Clock::TimePoint until) {
  const auto found = members_.find(identity);
  if (found == members_.end() || found->second.address != address) return false;
  found->second.until = std::max(found->second.until, until);
  return true;
}

absl::Status MemberList::Put(Member member) {
  std::erase_if(members_, [&](const auto& entry) {
    return entry.second.address == member.address || entry.first == member.identity;
  });
  if (members_.size() >= kMostMembers) {
    return absl::ResourceExhaustedError(
        absl::StrCat("there are ", kMostMembers, " workers already"));
  }
  std::string identity = member.identity;
  members_.emplace(std::move(identity), std::move(member));
  return absl::OkStatus();
}

bool MemberList::Remove(const std::string& identity) { return members_.erase(identity) > 0; }

std::vector<Member> MemberList::TakeExpired(Clock::TimePoint now) {
  std::vector<Member> expired;
  std::erase_if(members_, [&](auto& entry) {
    if (entry.second.until >= now) return false;
    expired.push_back(std::move(entry.second));
    return true;
  });
  return expired;
}

std::vector<std::string> MemberList::Addresses() const {
  std::vector<std::string> addresses;
  addresses.reserve(members_.size());
  for (const auto& [identity, member] : members_) addresses.push_back(member.address);
  return addresses;
}

}  // namespace weft
