// What `weft doctor` thinks of what it was told: pure functions from facts to findings.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/host/host_facts.h"
#include "common/tls/certificate.h"
#include "coordinator/cluster/fleet_report.h"

namespace weft {

enum class FindingLevel {
  kGood,     // as it should be
  kNote,     // works, could be better
  kWarning,  // works here and now, and will not elsewhere or later
  kProblem,  // does not work
};

// "ok", "note", "warning", "problem".
std::string_view LevelText(FindingLevel level);

struct Finding {
  FindingLevel level = FindingLevel::kGood;
  std::string subject;  // a machine, a worker, a link
  std::string text;
  std::string advice = {};  // what to change; empty where nothing is to be
};

// A machine: its processors, memory, shared memory, limits.
std::vector<Finding> CheckHost(const std::string& subject, const HostFacts& facts);

// A clock that is `ahead` seconds before this machine's, which is known to `error` seconds.
// Certificates and logs are dated by clocks; nothing of the protocol is.
Finding CheckClock(const std::string& subject, double ahead, double error);

// A worker that answers, against the release of this program.
std::vector<Finding> CheckWorker(const WorkerReport& worker, std::string_view own_release);

// A pair whose link was measured.
Finding CheckLink(const LinkReport& link);

// A certificate at `now`, seconds of Unix time.
Finding CheckCertificate(const std::string& subject, const CertificateFacts& facts, int64_t now);

}  // namespace weft
