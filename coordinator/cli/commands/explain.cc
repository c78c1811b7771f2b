// The flags of `weft explain`.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/gguf/gguf_file.h"
#include "coordinator/cli/commands/commands.h"
#include "coordinator/cli/local_devices.h"
#include "coordinator/cli/output_file.h"
#include "coordinator/cli/placement_flags.h"
#include "coordinator/explain/explain_json.h"
#include "coordinator/explain/explain_page.h"
#include "coordinator/explain/explain_report.h"
#include "coordinator/explain/explain_text.h"
#include "coordinator/models/model.h"
#include "coordinator/placement/device_batch.h"
#include "coordinator/placement/inventory.h"

namespace weft {
namespace {

constexpr int64_t kDefaultContext = 4096;

struct ExplainFlags {
  ModelFlags model;
  int64_t batch = 0;  // 0: as many as -ub says
  int64_t sequences = 1;
  std::string inventory;  // empty: this machine
  std::string html;       // empty: no page
  bool json = false;
  ExplainTextOptions text;
};

struct ExplainedDevices {
  LocalDevices local;
  std::optional<Inventory> inventory;
  std::vector<Device*> list;
  std::vector<HostLink> links;
};

absl::StatusOr<ExplainedDevices> OpenDevices(const ExplainFlags& flags, bool blas) {
  ExplainedDevices devices;
  if (flags.inventory.empty()) {
    LocalDeviceOptions options;
    options.threads = flags.model.threads;
    options.instruction_set = flags.model.instruction_set;
    options.blas = blas;
    ASSIGN_OR_RETURN(devices.local, OpenLocalDevices(options));
    devices.list = devices.local.devices;
  } else {
    if (blas) {
      return absl::InvalidArgumentError(
          "--accel is for this machine; an inventory lists the accelerators of its own");
    }
    ASSIGN_OR_RETURN(devices.inventory, Inventory::Read(flags.inventory));
    devices.list.assign(devices.inventory->devices().begin(), devices.inventory->devices().end());
    absl::flat_hash_map<std::string, std::string> machines;  // by host
    for (const Device* device : devices.list) machines.emplace(device->host(), device->machine());
    for (const InventoryLink& link : devices.inventory->links()) {
      const bool through_memory = machines[link.a] == machines[link.b];
      devices.links.push_back(
          {link.a, link.b, {link.latency_us, link.bytes_per_s}, through_memory});
    }
  }
  return devices;
}

absl::StatusOr<ExplainOptions> MakeOptions(const ExplainFlags& flags,
                                           const PlacementRequest& request, const Model& model,
                                           absl::Span<Device* const> devices, const Clock& clock) {
  ExplainOptions options;
  options.placement = request.placement;
  options.plan = request.plan;
  ASSIGN_OR_RETURN(options.batch_ranges, ResolveDeviceBatches(request.device_batches, devices));
  ASSIGN_OR_RETURN(options.key_type, ParseCacheType("-ctk", flags.model.key_type));
  ASSIGN_OR_RETURN(options.value_type, ParseCacheType("-ctv", flags.model.value_type));
  const int64_t trained = model.hyperparameters().context_length;
  ASSIGN_OR_RETURN(options.context, ResolveContext(flags.model.context, kDefaultContext, trained));
  options.batch = flags.batch != 0 ? flags.batch : std::min(flags.model.ubatch, options.context);
  options.sequences = flags.sequences;
  if (flags.text.timings) options.clock = &clock;
  return options;
}

absl::Status WritePage(const ExplainFlags& flags, const GgufFile& file, const std::string& page) {
  std::vector<std::string> inputs;
  inputs.reserve(static_cast<size_t>(file.file_count()) + 1);
  for (int i = 0; i < file.file_count(); ++i) inputs.push_back(file.file(i).path());
  if (!flags.inventory.empty()) inputs.push_back(flags.inventory);
  ASSIGN_OR_RETURN(const std::unique_ptr<OutputFile> out, OutputFile::Create(flags.html, inputs));
  RETURN_IF_ERROR(out->Write(page.data(), page.size()));
  return out->Finish();
}

absl::Status Explain(const ExplainFlags& flags, const CommandContext& context) {
  ASSIGN_OR_RETURN(const std::unique_ptr<GgufFile> file, GgufFile::Open(flags.model.model));
  absl::StatusOr<std::unique_ptr<Model>> model = Model::Create(*file);
  if (!model.ok()) {
    return absl::Status(model.status().code(),
                        absl::StrCat(flags.model.model, ": ", model.status().message()));
  }
  ASSIGN_OR_RETURN(const PlacementRequest request, ParsePlacementFlags(flags.model.placement));
  ASSIGN_OR_RETURN(const ExplainedDevices devices, OpenDevices(flags, request.blas));
  ASSIGN_OR_RETURN(ExplainOptions options,
                   MakeOptions(flags, request, **model, devices.list, context.clock));
  options.links = devices.links;
  ASSIGN_OR_RETURN(const ExplainReport report, MakeExplainReport(**model, devices.list, options));
  if (!flags.html.empty()) {
    RETURN_IF_ERROR(WritePage(flags, *file, ExplainPage(report, **model, devices.list, options)));
    context.logger.Info(absl::StrCat("wrote ", flags.html));
    if (!flags.json) return absl::OkStatus();
  }
  if (flags.json) return Print(ExplainJson(report, {.timings = flags.text.timings}));
  return Print(ExplainText(report, flags.text));
}

}  // namespace

void AddExplainCommand(CLI::App& app, CommandContext& context) {
  auto flags = std::make_shared<ExplainFlags>();
  CLI::App* command =
      app.add_subcommand("explain", "which device holds and computes what, and why; loads nothing");
  command->footer("Example: weft explain -m models/shakespeare-q8_0.gguf --batch 64");
  AddModelFlags(*command, flags->model);
  command->add_option("--batch", flags->batch, "tokens of the prompt step; 0: as -ub");
  command->add_option("--sequences", flags->sequences, "sequences that decode together")
      ->capture_default_str();
  command->add_option("--inventory", flags->inventory,
                      "JSON file of machines to explain for, instead of this one");
  command->add_flag("--nodes", flags->text.nodes, "a line for every node and split");
  command->add_flag("--timings", flags->text.timings, "show how long each pass took");
  command->add_option("--html", flags->html,
                      "write a page to step through the passes to this file");
  command->add_flag("--json", flags->json, "print one JSON object");
  command->callback([flags, &context] {
    context.action = [flags, &context] { return Explain(*flags, context); };
  });
}

}  // namespace weft
