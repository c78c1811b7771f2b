// Workers that joined, each as long as its lease.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/clock.h"

namespace weft {

struct Member {
  std::string identity;  // as WorkerIdentity: its machine and its process
  std::string name;      // for people
  std::string address;
  Clock::TimePoint until;
};

// Each worker is in it once, and each address. Not thread-safe.
class MemberList {
 public:
  static constexpr size_t kMostMembers = 256;

  // Extends the lease of one that is in the list with that address; false: it is not.
  bool Renew(const std::string& identity, const std::string& address, Clock::TimePoint until);
  // Takes it up, or moves it to another address. Who had that address before is no longer there.
  // Errors: RESOURCE_EXHAUSTED for more than kMostMembers.
  absl::Status Put(Member member);
  // Whether it was there.
  bool Remove(const std::string& identity);
  // Those whose leases have ended; they are no longer in it.
  std::vector<Member> TakeExpired(Clock::TimePoint now);

  std::vector<std::string> Addresses() const;
  size_t size() const { return members_.size(); }

 private:
  std::map<std::string, Member> members_;  // by identity
};

}  // namespace weft
