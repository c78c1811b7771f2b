// weft doctor: whether this machine, and a fleet, are fit for weft, and what to change.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/base/unix_time.h"
#include "common/host/host_facts.h"
#include "common/tls/tls_folder.h"
#include "coordinator/cli/commands/commands.h"
#include "coordinator/cli/doctor/checks.h"
#include "coordinator/cli/doctor/fleet_visit.h"
#include "coordinator/cli/fleet_flags.h"

namespace weft {
namespace {

struct DoctorFlags {
  FleetFlags fleet;
  bool no_links = false;
  bool json = false;
};

int64_t Count(const std::vector<Finding>& findings, FindingLevel level) {
  return std::count_if(findings.begin(), findings.end(),
                       [level](const Finding& finding) { return finding.level == level; });
}

std::string FindingsText(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    absl::StrAppend(&text, absl::StrFormat("%-8s", LevelText(finding.level)), finding.subject, ": ",
                    finding.text, "\n");
    if (!finding.advice.empty()) absl::StrAppend(&text, "          -> ", finding.advice, "\n");
  }
  absl::StrAppend(&text, Count(findings, FindingLevel::kProblem), " problems, ",
                  Count(findings, FindingLevel::kWarning), " warnings, ",
                  Count(findings, FindingLevel::kNote), " notes\n");
  return text;
}

nlohmann::ordered_json FindingsJson(const std::vector<Finding>& findings) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Finding& finding : findings) {
    list.push_back({{"level", LevelText(finding.level)},
                    {"subject", finding.subject},
                    {"text", finding.text},
                    {"advice", finding.advice}});
  }
  return {{"findings", list},
          {"problems", Count(findings, FindingLevel::kProblem)},
          {"warnings", Count(findings, FindingLevel::kWarning)}};
}

// The folder of --tls: what a worker would say of it, and how long it will.
Finding CheckTls(const std::string& path, const absl::StatusOr<TlsFolder>& folder, int64_t now) {
  const std::string subject = absl::StrCat("--tls ", path);
  if (folder.ok()) return CheckCertificate(subject, folder->facts, now);
  return {FindingLevel::kProblem, subject, std::string(folder.status().message()),
          "weft certs init makes such a folder, weft certs coordinator renews its certificate"};
}

absl::Status Run(const DoctorFlags& flags, CommandContext& context) {
  std::vector<Finding> findings = CheckHost("this machine", ReadHostFacts());
  std::unique_ptr<TlsFolder> own;  // null: none, or none that could be used
  if (!flags.fleet.tls.empty()) {
    const int64_t now = UnixSeconds();
    absl::StatusOr<TlsFolder> folder = LoadTlsFolder(flags.fleet.tls, TlsRole::kCoordinator, now);
    findings.push_back(CheckTls(flags.fleet.tls, folder, now));
    if (folder.ok()) own = std::make_unique<TlsFolder>(*std::move(folder));
  }
  if (flags.fleet.any()) {
    std::shared_ptr<WorkerDirectory> found;  // workers stay members while they are looked at
    ASSIGN_OR_RETURN(FleetOptions options, ParseFleetFlags(flags.fleet, 0, "", context.logger));
    if (options.directory != nullptr) {
      // Each address is looked at, also those that others leave out.
      ASSIGN_OR_RETURN(options.workers, options.directory->Await(context.clock.Now()));
      found = std::exchange(options.directory, nullptr);
    }
    if (options.local_workers > 0) {
      return absl::InvalidArgumentError(
          "weft doctor: --local-workers are fit if this machine is; name others with --workers");
    }
    for (Finding& finding : VisitFleet(options, own.get(), !flags.no_links, context.logger)) {
      findings.push_back(std::move(finding));
    }
  }
  RETURN_IF_ERROR(
      Print(flags.json ? FindingsJson(findings).dump(2) + "\n" : FindingsText(findings)));
  const int64_t problems = Count(findings, FindingLevel::kProblem);
  if (problems == 0) return absl::OkStatus();
  return absl::AbortedError(
      absl::StrCat(problems, problems == 1 ? " problem" : " problems", " found"));
}

}  // namespace

void AddDoctorCommand(CLI::App& app, CommandContext& context) {
  const auto flags = std::make_shared<DoctorFlags>();
  CLI::App* command = app.add_subcommand(
      "doctor", "Check this machine, or a fleet, and say what to change. Exit code 1: a problem.");
  AddFleetFlags(*command, flags->fleet);
  command->add_flag("--no-links", flags->no_links, "do not measure the links");
  command->add_flag("--json", flags->json, "print JSON");
  command->footer("Example: weft doctor --workers 10.0.0.2,10.0.0.3");
  command->callback(
      [flags, &context] { context.action = [flags, &context] { return Run(*flags, context); }; });
}

}  // namespace weft
