#include "coordinator/explain/explain_text.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/absl_view.h"
#include "common/base/escaped_text.h"
#include "coordinator/explain/memory_text.h"
#include "coordinator/explain/phase_text.h"
#include "coordinator/explain/text_table.h"

namespace weft {
namespace {

constexpr size_t kMaxNameBytes = 128;
constexpr size_t kMaxTextBytes = 2048;

std::string Shown(const std::string& text) { return EscapedText(text, kMaxNameBytes); }

std::string Header(const ExplainReport& report) {
  std::string text =
      absl::StrCat("model: ", report.model.empty() ? "unnamed" : Shown(report.model), " (",
                   Shown(report.architecture), "), ", report.layers, " layers");
  if (report.experts > 0) absl::StrAppend(&text, ", ", report.experts, " experts");
  absl::StrAppend(&text, "\nsteps: prefill of ", report.batch, ", decode of ", report.sequences,
                  report.sequences == 1 ? " token" : " tokens", "; context ", report.context,
                  ", keys ", report.key_type, ", values ", report.value_type, "\n");
  return text;
}

std::string Devices(const ExplainReport& report) {
  int64_t crossing = 0;
  int64_t workspace = 0;
  for (const ExplainDevice& device : report.devices) {
    crossing += device.crossing_bytes;
    workspace += device.workspace_bytes;
  }
  TextTable table("lllrrrrrrr");
  std::vector<std::string> row = {"name", "kind", "host", "weights", "caches", "arena"};
  if (crossing > 0) row.emplace_back("crossing");
  if (workspace > 0) row.emplace_back("workspace");
  row.emplace_back("sum");
  row.emplace_back("of");
  table.AddRow(std::move(row));
  for (const ExplainDevice& device : report.devices) {
    row = {Shown(device.name),
           device.kind,
           Shown(device.host),
           MemoryText(device.weight_bytes),
           MemoryText(device.cache_bytes),
           MemoryText(device.arena_bytes)};
    if (crossing > 0) row.push_back(MemoryText(device.crossing_bytes));
    if (workspace > 0) row.push_back(MemoryText(device.workspace_bytes));
    row.push_back(MemoryText(device.Sum()));
    row.push_back(device.memory_bytes == 0 ? "unknown" : MemoryText(device.memory_bytes));
    table.AddRow(std::move(row));
  }
  return "\ndevices\n" + table.Text(2);
}

// "layers 0..15", "layer 3".
std::string LayersName(size_t first, size_t last) {
  return first == last ? absl::StrCat("layer ", first) : absl::StrCat("layers ", first, "..", last);
}

// Weights and caches that are not where their layer is, by device and reason.
std::string Apart(const ExplainReport& report) {
  struct Group {
    int64_t count = 0;
    int64_t bytes = 0;
    std::string first;
  };
  std::map<std::pair<int32_t, std::string>, Group> groups;
  for (const ExplainWeight& weight : report.weights) {
    if (weight.with_layer) continue;
    Group& group = groups[{weight.device, weight.reason}];
    if (group.count++ == 0) group.first = weight.name;
    group.bytes += weight.bytes;
  }
  TextTable table("rll");
  for (const auto& [key, group] : groups) {
    table.AddRow({absl::StrCat(group.count, group.count == 1 ? " weight" : " weights"),
                  MemoryText(group.bytes),
                  absl::StrCat("on ", Shown(report.devices[key.first].name), ": ",
                               EscapedText(key.second, kMaxTextBytes), " (",
                               group.count == 1 ? "" : "first ", Shown(group.first), ")")});
  }
  Group caches;
  for (const ExplainCache& cache : report.caches) {
    if (cache.device == report.layer_devices[cache.layer]) continue;
    if (caches.count++ == 0) caches.first = cache.reason;
    caches.bytes += cache.bytes;
  }
  if (caches.count > 0) {
    table.AddRow({absl::StrCat(caches.count, " caches"), MemoryText(caches.bytes),
                  absl::StrCat("in host memory: ", EscapedText(caches.first, kMaxTextBytes))});
  }
  return table.empty() ? "" : "  not with their layer:\n" + table.Text(4);
}

std::string LinkText(const LinkModel& link) {
  return absl::StrFormat("%.4g us and %.3g GB/s", link.latency_us, link.bytes_per_s / 1e9);
}

// "ranks 0 1 | 2 3": machines one after another.
std::string MachinesText(const ExplainGroup& group) {
  std::vector<std::string> ranks;  // by machine
  for (size_t r = 0; r < group.machines.size(); ++r) {
    const auto machine = static_cast<size_t>(group.machines[r]);
    ranks.resize(std::max(ranks.size(), machine + 1));
    absl::StrAppend(&ranks[machine], ranks[machine].empty() ? "" : " ", r);
  }
  return absl::StrCat("ranks ", absl::StrJoin(ranks, " | "));
}

// Who is in a group, and how many of the weights its ranks share.
std::string Groups(const ExplainReport& report) {
  if (report.groups.empty()) return "";
  TextTable table("lll");
  for (const ExplainGroup& group : report.groups) {
    for (size_t r = 0; r < group.ranks.size(); ++r) {
      table.AddRow({r == 0 ? Shown(group.name) : "", absl::StrCat("rank ", r),
                    absl::StrCat(Shown(report.devices[group.ranks[r]].name), ", share ",
                                 absl::StrFormat("%g", group.shares[r]))});
    }
  }
  std::string links;
  for (const ExplainGroup& group : report.groups) {
    absl::StrAppend(&links, "    machines of ", Shown(group.name), ": ", MachinesText(group), "\n");
    absl::StrAppend(&links, "    links of ", Shown(group.name), ": ", LinkText(group.links.outer),
                    " between machines, ", LinkText(group.links.inner), " within one\n");
  }
  int64_t cut = 0;
  int64_t mirrored = 0;
  int64_t mirrored_bytes = 0;
  for (const ExplainWeight& weight : report.weights) {
    if (weight.split.empty()) continue;
    const bool on_all = weight.split == "mirrored";
    ++(on_all ? mirrored : cut);
    mirrored_bytes += on_all ? weight.bytes : 0;
  }
  return absl::StrCat("  groups:\n", table.Text(4), links, "    ", cut,
                      " weights are cut over the ranks, ", mirrored, " of ",
                      MemoryText(mirrored_bytes), " are on each\n");
}

std::string Placement(const ExplainReport& report) {
  TextTable table("ll");
  const auto name = [&](int32_t device) {
    for (const ExplainGroup& group : report.groups) {
      if (group.ranks.front() == device) return Shown(group.name);
    }
    return Shown(report.devices[device].name);
  };
  table.AddRow({"input layer", name(report.input_device)});
  const std::vector<int32_t>& layers = report.layer_devices;
  const size_t count = layers.size() - 1;
  for (size_t first = 0, last = 0; first < count; first = last + 1) {
    last = first;
    while (last + 1 < count && layers[last + 1] == layers[first]) ++last;
    table.AddRow({LayersName(first, last), name(layers[first])});
  }
  table.AddRow({"output layer", name(layers[count])});
  return "\nplacement\n" + table.Text(2) + Apart(report) + Groups(report);
}

std::string Remarks(const ExplainReport& report) {
  if (report.remarks.empty()) return "\nremarks: none\n";
  std::string text = "\nremarks\n";
  for (const ExplainRemark& remark : report.remarks) {
    absl::StrAppend(&text, "  ", remark.code, remark.phase.empty() ? "" : " (", remark.phase,
                    remark.phase.empty() ? "" : ")", ": ", EscapedText(remark.text, kMaxTextBytes),
                    "\n");
    if (!remark.action.empty()) {
      absl::StrAppend(&text, "    -> ", EscapedText(remark.action, kMaxTextBytes), "\n");
    }
  }
  return text;
}

}  // namespace

std::string ExplainText(const ExplainReport& report, const ExplainTextOptions& options) {
  std::string text = Header(report) + Devices(report) + Placement(report);
  for (const ExplainPhase& phase : report.phases) text += PhaseText(report, phase, options);
  return text + Remarks(report);
}

}  // namespace weft
