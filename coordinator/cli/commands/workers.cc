// weft workers: what the workers of a fleet are, and how fast they reach each other.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "coordinator/cli/commands/commands.h"
#include "coordinator/cli/fleet_flags.h"
#include "coordinator/cluster/fleet_report.h"

namespace weft {
namespace {

struct WorkersFlags {
  FleetFlags fleet;
  int32_t threads = 0;
  bool no_links = false;
  bool json = false;
};

std::string Gib(int64_t bytes) {
  return absl::StrFormat("%.1f GiB", static_cast<double>(bytes) / (1 << 30));
}

nlohmann::ordered_json DeviceJson(const DeviceReport& device) {
  return {{"name", device.name},
          {"kind", device.kind},
          {"description", device.description},
          {"memory_free", device.memory.free_bytes},
          {"memory_total", device.memory.total_bytes},
          {"quarantined", device.quarantined}};
}

nlohmann::ordered_json ReportJson(const FleetReport& report) {
  nlohmann::ordered_json workers = nlohmann::ordered_json::array();
  for (const WorkerReport& worker : report.workers) {
    nlohmann::ordered_json devices = nlohmann::ordered_json::array();
    for (const DeviceReport& device : worker.devices) devices.push_back(DeviceJson(device));
    workers.push_back({{"name", worker.name},
                       {"address", worker.address},
                       {"host", worker.host},
                       {"release", worker.release},
                       {"protocol", worker.protocol},
                       {"sessions", worker.sessions},
                       {"cache", worker.has_cache},
                       {"ping_us", worker.ping_us},
                       {"devices", devices}});
  }
  nlohmann::ordered_json links = nlohmann::ordered_json::array();
  for (const LinkReport& link : report.links) {
    nlohmann::ordered_json entry = {
        {"a", link.a}, {"b", link.b}, {"same_host", link.same_host}, {"transport", link.transport}};
    if (link.error.empty()) {
      entry["latency_us"] = link.latency_us;
      entry["bytes_per_s"] = link.bytes_per_s;
    } else {
      entry["error"] = link.error;
    }
    links.push_back(entry);
  }
  return {{"workers", workers}, {"links", links}};
}

std::string ReportText(const FleetReport& report) {
  std::string text;
  for (const WorkerReport& worker : report.workers) {
    absl::StrAppend(&text, worker.name, "  ", worker.address, "  ", worker.host, "  weft ",
                    worker.release, " (protocol ", worker.protocol, ")",
                    absl::StrFormat("  ping %.0f us", worker.ping_us),
                    worker.has_cache ? "  cache" : "", "\n");
    for (const DeviceReport& device : worker.devices) {
      absl::StrAppend(&text, "  ", device.name, "  ", device.description, "  ",
                      Gib(device.memory.free_bytes), " free of ", Gib(device.memory.total_bytes),
                      "\n");
      for (const std::string& operation : device.quarantined) {
        absl::StrAppend(&text, "    quarantined: ", operation, "\n");
      }
    }
  }
  for (const LinkReport& link : report.links) {
    absl::StrAppend(&text, link.a, " - ", link.b, "  ", link.transport, "  ");
    if (link.error.empty()) {
      absl::StrAppend(
          &text, absl::StrFormat("%.1f us  %.2f GB/s", link.latency_us, link.bytes_per_s / 1e9));
    } else {
      absl::StrAppend(&text, link.error);
    }
    absl::StrAppend(&text, link.same_host ? "  (same machine)\n" : "\n");
  }
  return text;
}

absl::Status Run(const WorkersFlags& flags, CommandContext& context) {
  if (!flags.fleet.any()) {
    return absl::InvalidArgumentError(
        "weft workers: name them with --workers HOST:PORT,... or --workers-dns NAME:PORT, or let "
        "them come with --workers-join ADDR:PORT");
  }
  ASSIGN_OR_RETURN(const FleetOptions options,
                   ParseFleetFlags(flags.fleet, flags.threads, "", context.logger));
  ASSIGN_OR_RETURN(const std::unique_ptr<Fleet> fleet, Fleet::Open(options, context.logger));
  const FleetReport report = ReportFleet(*fleet, !flags.no_links);
  RETURN_IF_ERROR(Print(flags.json ? ReportJson(report).dump(2) + "\n" : ReportText(report)));
  RETURN_IF_ERROR(fleet->lost());
  for (const LinkReport& link : report.links) {
    if (!link.error.empty()) return absl::InternalError(link.error);
  }
  return absl::OkStatus();
}

}  // namespace

void AddWorkersCommand(CLI::App& app, CommandContext& context) {
  const auto flags = std::make_shared<WorkersFlags>();
  CLI::App* command =
      app.add_subcommand("workers", "List workers, their devices, and the links between them.");
  AddFleetFlags(*command, flags->fleet);
  command->add_flag("--no-links", flags->no_links, "do not measure the links");
  command->add_flag("--json", flags->json, "print JSON");
  command->footer("Example: weft workers --workers 10.0.0.2:7000,10.0.0.3:7000");
  command->callback(
      [flags, &context] { context.action = [flags, &context] { return Run(*flags, context); }; });
}

}  // namespace weft
