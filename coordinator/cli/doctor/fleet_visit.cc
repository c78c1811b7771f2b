#include "coordinator/cli/doctor/fleet_visit.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/clock.h"
#include "common/base/parallel.h"
#include "common/base/unix_time.h"
#include "common/tls/tls_probe.h"
#include "coordinator/cluster/fleet_report.h"

namespace weft {
namespace {

// Pairs are looked at one by one up to here.
constexpr size_t kMostPairwise = 16;
// Workers that are asked at the same time.
constexpr size_t kMostAtOnce = 16;

constexpr char kUnreachable[] =
    "is weft-worker running there, on that --listen address and port? Does a firewall let it "
    "through? Do both sides use --tls, or neither?";

LinkReport BrokenLink(std::string a, std::string b, const absl::Status& status) {
  LinkReport link;
  link.a = std::move(a);
  link.b = std::move(b);
  link.error = std::string(status.message());
  return link;
}

class Visit {
 public:
  Visit(const FleetOptions& options, const TlsFolder* own, Logger& logger)
      : options_(options), own_(own), logger_(logger) {}

  std::vector<Finding> Run(bool measure) {
    std::vector<absl::StatusOr<std::unique_ptr<Fleet>>> fleets = OpenEach();
    for (size_t i = 0; i < fleets.size(); ++i) {
      VisitWorker(options_.workers[i], std::move(fleets[i]));
    }
    if (measure && !reachable_.empty()) VisitLinks();
    return std::move(findings_);
  }

 private:
  absl::StatusOr<std::unique_ptr<Fleet>> Open(std::vector<std::string> workers) const {
    FleetOptions options = options_;
    options.workers = std::move(workers);
    return Fleet::Open(options, logger_);
  }

  // Each worker alone, many at the same time: one that is silent takes some seconds.
  std::vector<absl::StatusOr<std::unique_ptr<Fleet>>> OpenEach() const {
    const size_t count = options_.workers.size();
    std::vector<absl::StatusOr<std::unique_ptr<Fleet>>> fleets(count);
    std::atomic<size_t> next = 0;
    // Where a thread does not start, the others do its part, too.
    RunParallel(std::min(count, kMostAtOnce), [&](size_t) {
      for (size_t i = next++; i < count; i = next++) fleets[i] = Open({options_.workers[i]});
      return absl::OkStatus();
    }).IgnoreError();
    return fleets;
  }

  void VisitWorker(const std::string& address, absl::StatusOr<std::unique_ptr<Fleet>> fleet) {
    if (!fleet.ok()) {
      // Each was alone in its fleet, and the first there.
      std::string why = absl::StrReplaceAll(fleet.status().message(),
                                            {{absl::StrCat("w0 (", address, ")"), address}});
      findings_.push_back({FindingLevel::kProblem, address, std::move(why), kUnreachable});
      return;
    }
    reachable_.push_back(address);
    WorkerReport report = ReportFleet(**fleet, false).workers[0];
    report.name = absl::StrCat("w", reachable_.size() - 1);
    const std::string subject = absl::StrCat(report.name, " (", report.address, ")");
    for (Finding& finding : CheckWorker(report, WEFT_VERSION)) {
      findings_.push_back(std::move(finding));
    }
    VisitCertificate(subject, (*fleet)->worker(0).address());
    const absl::StatusOr<RemoteHost> host = (*fleet)->worker(0).DescribeHost();
    if (!host.ok()) {
      findings_.push_back({FindingLevel::kNote, subject, std::string(host.status().message()),
                           "the same release of weft on all machines"});
      return;
    }
    for (Finding& finding : CheckHost(subject, host->facts)) {
      findings_.push_back(std::move(finding));
    }
    findings_.push_back(CheckClock(subject, host->clock_ahead_seconds, host->clock_error_seconds));
  }

  // That which the worker shows now, which may be newer than that of a connection.
  void VisitCertificate(const std::string& subject, const HostAddress& address) {
    if (own_ == nullptr || address.host.empty()) return;
    const SystemClock clock;
    const absl::StatusOr<CertificateFacts> shown =
        ReadServerCertificate(address, *own_, clock, clock.Now() + options_.loss_after);
    if (shown.ok()) findings_.push_back(CheckCertificate(subject, *shown, UnixSeconds()));
  }

  void VisitLinks() {
    absl::StatusOr<std::unique_ptr<Fleet>> fleet = Open(reachable_);
    if (!fleet.ok()) return VisitPairs(fleet.status());
    for (const LinkReport& link : ReportFleet(**fleet, true).links) {
      findings_.push_back(CheckLink(link));
    }
    fleet->reset();
    // Who comes first is connected to by those behind it.
    if (reachable_.size() < 2) return;
    const std::vector<std::string> reversed(reachable_.rbegin(), reachable_.rend());
    const absl::Status other_way = Open(reversed).status();
    if (!other_way.ok()) VisitPairs(other_way);
  }

  // Which of them it is that do not reach each other.
  void VisitPairs(const absl::Status& together) {
    const size_t before = findings_.size();
    if (reachable_.size() <= kMostPairwise) {
      for (size_t a = 0; a < reachable_.size(); ++a) {
        for (size_t b = 0; b < reachable_.size(); ++b) {
          if (a != b) VisitPair(a, b);
        }
      }
    }
    if (findings_.size() > before) return;
    findings_.push_back(CheckLink(BrokenLink("all workers", "each other", together)));
  }

  void VisitPair(size_t a, size_t b) {
    const absl::Status status = Open({reachable_[a], reachable_[b]}).status();
    if (status.ok()) return;
    findings_.push_back(CheckLink(BrokenLink(reachable_[b], reachable_[a], status)));
  }

  const FleetOptions options_;
  const TlsFolder* const own_;
  Logger& logger_;
  std::vector<std::string> reachable_;
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<Finding> VisitFleet(const FleetOptions& options, const TlsFolder* own, bool measure,
                                Logger& logger) {
  return Visit(options, own, logger).Run(measure);
}

}  // namespace weft
