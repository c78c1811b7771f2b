#include "coordinator/cli/doctor/checks.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/absl_view.h"
#include "common/host/control_group.h"

namespace weft {
namespace {

using enum FindingLevel;

constexpr int64_t kMiB = int64_t{1} << 20;
// A rank's communicator takes some megabytes of shared memory for each other process (docs).
constexpr int64_t kLeastSharedBytes = 256 * kMiB;
constexpr int64_t kLeastOpenFiles = 1024;
constexpr int64_t kLeastLockedBytes = 64 * kMiB;
constexpr double kMostClockSkew = 2;  // seconds
constexpr double kSlowLinkUs = 500;
constexpr double kSlowLinkBytes = 100e6;  // per second: below what a gigabit carries

std::string Size(int64_t bytes) {
  const double gib = static_cast<double>(bytes) / (1 << 30);
  return gib >= 1 ? absl::StrFormat("%.1f GiB", gib) : absl::StrFormat("%d MiB", bytes / kMiB);
}

void CheckProcessors(const std::string& subject, const HostFacts& facts,
                     std::vector<Finding>& findings) {
  if (facts.processor_limit <= 0 || facts.processor_limit >= facts.processors) return;
  const ControlGroupLimits limits{facts.processor_limit, facts.memory_limit};
  findings.push_back(
      {kNote, subject,
       absl::StrFormat("%d processors are seen, %.2f may be used: threads beyond that are stopped "
                       "in the midst of a step",
                       facts.processors, facts.processor_limit),
       absl::StrFormat("no --threads (that makes %d), or a CPU limit that is none",
                       DefaultThreads(facts.processors, limits))});
}

void CheckMemory(const std::string& subject, const HostFacts& facts,
                 std::vector<Finding>& findings) {
  const bool limited = facts.memory_limit >= 0 && facts.memory_limit < facts.memory_bytes;
  if (!limited) return;
  const int64_t given =
      DefaultMemoryBytes(facts.memory_bytes, {facts.processor_limit, facts.memory_limit});
  findings.push_back(
      {kNote, subject,
       absl::StrCat("memory is limited to ", Size(facts.memory_limit), " of ",
                    Size(facts.memory_bytes)),
       absl::StrCat("no --memory (that gives out ", Size(given), "), or one below the limit")});
}

void CheckSharedMemory(const std::string& subject, const HostFacts& facts,
                       std::vector<Finding>& findings) {
  if (facts.shared_bytes < 0) {
    findings.push_back({kWarning, subject,
                        "there is no /dev/shm: processes of this machine talk "
                        "to each other over the network stack",
                        "mount a tmpfs at /dev/shm"});
    return;
  }
  if (facts.shared_free >= kLeastSharedBytes) return;
  findings.push_back({kWarning, subject,
                      absl::StrCat("/dev/shm has ", Size(facts.shared_free), " free of ",
                                   Size(facts.shared_bytes), "; ranks exchange through it"),
                      "a larger one: docker run --shm-size, an emptyDir with medium Memory, or "
                      "mount -o remount,size=1g /dev/shm"});
}

void CheckLimits(const std::string& subject, const HostFacts& facts,
                 std::vector<Finding>& findings) {
  if (facts.open_files_limit >= 0 && facts.open_files_limit < kLeastOpenFiles) {
    findings.push_back({kWarning, subject,
                        absl::StrCat("a process may open ", facts.open_files_limit,
                                     " files; every client and every peer takes some"),
                        "ulimit -n 65536, or LimitNOFILE= of the unit"});
  }
  if (facts.has_rdma && facts.locked_limit >= 0 && facts.locked_limit < kLeastLockedBytes) {
    findings.push_back({kWarning, subject,
                        absl::StrCat("there is RDMA, but a process may lock only ",
                                     facts.locked_limit, " bytes of memory"),
                        "ulimit -l unlimited, or LimitMEMLOCK=infinity of the unit"});
  }
  if (facts.huge_pages == "never") {
    findings.push_back({kNote, subject,
                        "transparent huge pages are off; reading weights touches "
                        "many pages",
                        "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"});
  }
}

}  // namespace

std::string_view LevelText(FindingLevel level) {
  switch (level) {
    case kGood:
      return "ok";
    case kNote:
      return "note";
    case kWarning:
      return "warning";
    case kProblem:
      return "problem";
  }
  return "";
}

std::vector<Finding> CheckHost(const std::string& subject, const HostFacts& facts) {
  std::vector<Finding> findings;
  findings.push_back(
      {kGood, subject,
       absl::StrCat(facts.processors, " processors, ", Size(facts.memory_available), " of ",
                    Size(facts.memory_bytes), " memory available, Linux ", facts.kernel)});
  CheckProcessors(subject, facts, findings);
  CheckMemory(subject, facts, findings);
  CheckSharedMemory(subject, facts, findings);
  CheckLimits(subject, facts, findings);
  if (!facts.clock_held) {
    findings.push_back({kNote, subject, "no time service holds the clock",
                        "chrony or systemd-timesyncd; certificates are dated by it"});
  }
  return findings;
}

Finding CheckClock(const std::string& subject, double ahead, double error) {
  const double off = std::abs(ahead);
  std::string text = absl::StrFormat("its clock is %s by %.3f s (known to %.3f s)",
                                     ahead >= 0 ? "ahead" : "behind", off, error);
  if (off - error <= kMostClockSkew) return {kGood, subject, std::move(text)};
  return {kWarning, subject, std::move(text),
          "set the clocks by a time service; a certificate may seem not to have begun"};
}

std::vector<Finding> CheckWorker(const WorkerReport& worker, std::string_view own_release) {
  const std::string subject = absl::StrCat(worker.name, " (", worker.address, ")");
  std::vector<Finding> findings;
  std::string text = absl::StrCat("weft ", worker.release, " on ", worker.host);
  if (worker.ping_us > 0) absl::StrAppendFormat(&text, ", answers in %.0f us", worker.ping_us);
  findings.push_back({kGood, subject, std::move(text)});
  if (worker.release != own_release) {
    findings.push_back(
        {kNote, subject,
         absl::StrCat("it is weft ", worker.release, ", here is ", AbslView(own_release)),
         "the same release everywhere: only then both have all ops"});
  }
  for (const DeviceReport& device : worker.devices) {
    if (device.quarantined.empty()) continue;
    findings.push_back({kWarning, subject,
                        absl::StrCat(device.name,
                                     " computed wrong results in its self-test and is "
                                     "not used for: ",
                                     absl::StrJoin(device.quarantined, ", ")),
                        "another build, or another --devices; see the worker's log"});
  }
  return findings;
}

Finding CheckLink(const LinkReport& link) {
  const std::string subject = absl::StrCat(link.a, " - ", link.b);
  if (!link.error.empty()) {
    return {kProblem, subject, link.error,
            "the data address of each must be reachable from the other: weft-worker --announce, "
            "--data-listen, --data-ports, a firewall"};
  }
  std::string text = absl::StrFormat("%s, %.1f us, %.2f GB/s", link.transport, link.latency_us,
                                     link.bytes_per_s / 1e9);
  const bool network = link.transport == "tcp" || link.transport == "grpc";
  if (link.same_host && network) {
    return {kWarning, subject, absl::StrCat(text, ", though both are on one machine"),
            "one network and one IPC namespace for both, room in /dev/shm, and UCX in the build"};
  }
  if (link.latency_us > kSlowLinkUs || link.bytes_per_s < kSlowLinkBytes) {
    return {kNote, subject, absl::StrCat(text, ": slow for --split-mode tensor"),
            "layers over this link (--split-mode layer, --layout), or a faster network"};
  }
  return {kGood, subject, std::move(text)};
}

Finding CheckCertificate(const std::string& subject, const CertificateFacts& facts, int64_t now) {
  const absl::Status dates = CheckCertificateDates(facts, now);
  const char* renew = "weft certs makes a new one; running processes take it up";
  if (!dates.ok()) return {kProblem, subject, std::string(dates.message()), renew};
  const int64_t days = (facts.not_after - now) / kDaySeconds;
  std::string text =
      absl::StrCat("certificate ", CertificateText(facts), ", ", days, " days are left");
  if (days < kSoonEndingDays) return {kWarning, subject, std::move(text), renew};
  return {kGood, subject, std::move(text)};
}

}  // namespace weft
