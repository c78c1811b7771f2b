#include "coordinator/explain/phase_text.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/absl_view.h"
#include "common/base/escaped_text.h"
#include "coordinator/explain/collectives_text.h"
#include "coordinator/explain/layer_groups.h"
#include "coordinator/explain/memory_text.h"
#include "coordinator/explain/text_table.h"

namespace weft {
namespace {

constexpr size_t kMaxNameBytes = 128;
constexpr size_t kMaxTextBytes = 512;
constexpr size_t kMostSplits = 16;  // without --nodes
constexpr size_t kMostInputs = 3;   // of a split, without --nodes
constexpr size_t kMostOps = 4;      // of a run of nodes

std::string Shown(const std::string& text) { return EscapedText(text, kMaxNameBytes); }

std::string Counted(int64_t count, const char* what) {
  if (count == 1) return absl::StrCat("1 ", what);
  std::string words = absl::StrCat(count, " ", what, "s");
  if (absl::EndsWith(what, "y")) words.replace(words.size() - 2, 2, "ies");
  return words;
}

bool SamePlaces(const ExplainPhase& a, const ExplainPhase& b) {
  return std::equal(a.nodes.begin(), a.nodes.end(), b.nodes.begin(), b.nodes.end(),
                    [](const ExplainNode& x, const ExplainNode& y) {
                      return x.op == y.op && x.device == y.device && x.cause == y.cause;
                    });
}

class PhaseWriter {
 public:
  PhaseWriter(const ExplainReport& report, const ExplainPhase& phase,
              const ExplainTextOptions& options)
      : report_(report), phase_(phase), options_(options) {}

  std::string Text() {
    absl::StrAppend(&text_, "\n", phase_.name, ": ", Counted(phase_.tokens, "token"), ", ",
                    Counted(static_cast<int64_t>(phase_.nodes.size()), "node"), ", ",
                    Counted(static_cast<int64_t>(phase_.splits.size()), "split"), "\n");
    const ExplainPhase& first = report_.phases.front();
    const bool repeated = &phase_ != &first && SamePlaces(phase_, first) && !options_.nodes;
    if (repeated) absl::StrAppend(&text_, "  every node as in ", first.name, "\n");
    if (!repeated || options_.timings) Passes();
    Splits();
    if (!repeated) {
      Layers();
      Causes();
    }
    Arenas();
    Traffic();
    if (options_.nodes) Nodes();
    return std::move(text_);
  }

 private:
  std::string Choices() const {
    if (phase_.choices == 0) return "";
    return absl::StrCat(", ", Counted(phase_.choices, "choice"), " by rank 0 for all");
  }

  std::string Name(int32_t device) const {
    return device == kNoDevice ? "nowhere" : Shown(report_.devices[device].name);
  }

  void Passes() {
    TextTable table("lrll");
    for (const ExplainPass& pass : phase_.passes) {
      const bool cuts = &pass == &phase_.passes.back();
      table.AddRow({pass.name,
                    cuts ? Counted(static_cast<int64_t>(phase_.splits.size()), "split")
                         : Counted(static_cast<int64_t>(pass.changes.size()), "node"),
                    cuts ? "" : absl::StrCat(pass.other_changes, " leafs and views"),
                    options_.timings ? absl::StrFormat("%.3f ms", pass.seconds * 1e3) : ""});
    }
    absl::StrAppend(&text_, "  passes\n", table.Text(4));
  }

  // "blk.0..31", "input, blk.0..15".
  std::string LayersOf(const ExplainSplit& split) const {
    std::vector<std::string> parts;
    for (int32_t i = split.begin; i < split.end;) {
      const int32_t first = phase_.nodes[i].layer;
      int32_t last = first;
      int32_t end = i;
      for (; end < split.end && (phase_.nodes[end].layer < 0) == (first < 0); ++end) {
        last = phase_.nodes[end].layer;
      }
      if (first < 0) {
        parts.emplace_back(i == 0 ? "input" : "output");
      } else {
        parts.push_back(first == last ? absl::StrCat("blk.", first)
                                      : absl::StrCat("blk.", first, "..", last));
      }
      i = end;
    }
    return absl::StrJoin(parts, ", ");
  }

  std::string InputsOf(const ExplainSplit& split) const {
    if (split.inputs.empty()) return "nothing";
    const size_t shown =
        options_.nodes ? split.inputs.size() : std::min(kMostInputs, split.inputs.size());
    std::vector<std::string> parts;
    for (size_t i = 0; i < shown; ++i) {
      const ExplainInput& input = split.inputs[i];
      parts.push_back(absl::StrCat(AbslView(ReplicaKindName(input.kind)), " ", Shown(input.label),
                                   " ", MemoryText(input.bytes),
                                   input.kind == ReplicaKind::kInput ? "" : " from ",
                                   input.kind == ReplicaKind::kInput ? "" : Name(input.from)));
    }
    if (shown < split.inputs.size()) {
      int64_t rest = 0;
      for (size_t i = shown; i < split.inputs.size(); ++i) rest += split.inputs[i].bytes;
      parts.push_back(absl::StrCat(split.inputs.size() - shown, " more ", MemoryText(rest)));
    }
    return absl::StrJoin(parts, "; ");
  }

  void Splits() {
    TextTable table("rlrll");
    table.AddRow({"#", "device", "nodes", "layers", "copies in"});
    const size_t shown =
        options_.nodes ? phase_.splits.size() : std::min(kMostSplits, phase_.splits.size());
    for (size_t s = 0; s < shown; ++s) {
      const ExplainSplit& split = phase_.splits[s];
      table.AddRow({absl::StrCat(s), Name(split.device), absl::StrCat(split.end - split.begin),
                    LayersOf(split), InputsOf(split)});
    }
    absl::StrAppend(&text_, "  splits\n", table.Text(4));
    if (shown < phase_.splits.size()) {
      absl::StrAppend(&text_, "    and ", phase_.splits.size() - shown,
                      " more; --nodes shows all\n");
    }
  }

  // "mul_mat x3, glu" for the operations of a run, the most frequent first.
  std::string OpsOf(const NodeRun& run) const {
    std::map<std::string_view, int64_t> counts;
    for (int32_t i = run.begin; i < run.end; ++i) ++counts[OpName(phase_.nodes[i].op)];
    std::vector<std::pair<std::string_view, int64_t>> ops(counts.begin(), counts.end());
    std::stable_sort(ops.begin(), ops.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    std::vector<std::string> parts;
    for (const auto& [op, count] : ops) {
      if (parts.size() == kMostOps) {
        parts.emplace_back("...");
        break;
      }
      parts.push_back(count == 1 ? std::string(op) : absl::StrCat(AbslView(op), " x", count));
    }
    return absl::StrJoin(parts, ", ");
  }

  void Layers() {
    const std::vector<LayerGroup> groups = GroupLayers(phase_);
    TextTable table("llrl");
    for (const LayerGroup& group : groups) {
      std::string name = LayerGroupName(group, &group == &groups.front()) + ":";
      for (const NodeRun& run : group.runs) {
        table.AddRow({std::exchange(name, ""), Name(run.device),
                      Counted(run.end - run.begin, "node"), OpsOf(run)});
      }
    }
    absl::StrAppend(&text_, "  layers\n", table.Text(4));
  }

  // Each cause with the words of its first node.
  void Causes() {
    struct Cause {
      int64_t count = 0;
      std::string why;
      int64_t different = 0;
    };
    std::map<std::pair<std::string, int32_t>, Cause> causes;
    for (const ExplainNode& node : phase_.nodes) {
      Cause& cause = causes[{node.cause, node.device}];
      if (cause.count++ == 0) cause.why = node.why;
      if (node.why != cause.why) ++cause.different;
    }
    TextTable table("llrl");
    for (const auto& [key, cause] : causes) {
      table.AddRow({key.first, Name(key.second), absl::StrCat(cause.count),
                    absl::StrCat(EscapedText(cause.why, kMaxTextBytes),
                                 cause.different > 0 ? ", and so on" : "")});
    }
    absl::StrAppend(&text_, "  causes\n", table.Text(4));
  }

  void Arenas() {
    TextTable table("lrll");
    for (size_t d = 0; d < phase_.arenas.size(); ++d) {
      const ExplainArena& arena = phase_.arenas[d];
      if (arena.bytes == 0 && arena.crossing_bytes == 0 && arena.workspace_bytes == 0) continue;
      std::vector<std::string> more;
      if (arena.chunks > 1) more.push_back(Counted(arena.chunks, "chunk"));
      if (arena.crossing_bytes > 0) {
        more.push_back(absl::StrCat("crossing ", phase_.rotating_copies, " x ",
                                    MemoryText(arena.crossing_bytes)));
      }
      if (arena.workspace_bytes > 0) {
        more.push_back(absl::StrCat("workspace ", MemoryText(arena.workspace_bytes)));
      }
      table.AddRow({Name(static_cast<int32_t>(d)), MemoryText(arena.bytes),
                    absl::StrCat("lower bound ", MemoryText(arena.lower_bound)),
                    absl::StrJoin(more, ", ")});
    }
    if (!table.empty()) absl::StrAppend(&text_, "  arenas\n", table.Text(4));
  }

  void Traffic() {
    std::string line = absl::StrCat("inputs ", MemoryText(phase_.input_bytes));
    if (phase_.copies > 0) {
      absl::StrAppend(&line, ", ", Counted(phase_.copies, "copy"), " of ",
                      MemoryText(phase_.copied_bytes));
    }
    if (phase_.staged_bytes > 0) {
      absl::StrAppend(&line, ", of these ", MemoryText(phase_.staged_bytes), " of weights");
    }
    if (phase_.fused > 0) absl::StrAppend(&line, ", ", phase_.fused, " nodes fused");
    if (phase_.resolved > 0) absl::StrAppend(&line, ", ", phase_.resolved, " fused nodes resolved");
    absl::StrAppend(&text_, "  per step: ", line, ", ", phase_.in_place, " results in place\n");
    if (phase_.split_nodes > 0) {
      absl::StrAppend(&text_, "  ranks: ", phase_.split_nodes, " nodes of the model are split, ",
                      phase_.reductions, phase_.reductions == 1 ? " sum and " : " sums and ",
                      phase_.gathers, " gathers per step", Choices(), "\n",
                      CollectivesText(report_, phase_));
    }
    TextTable table("lllll");
    for (const ExplainProcess& process : phase_.processes) {
      std::vector<std::string> row = {Shown(process.host), Counted(process.executes, "execute"),
                                      Counted(process.replies, "reply")};
      if (process.sends > 0) {
        row.push_back(absl::StrCat("sends ", Counted(process.sends, "tensor"), " of ",
                                   MemoryText(process.sent_bytes)));
      }
      if (process.receives > 0) {
        row.push_back(absl::StrCat("receives ", Counted(process.receives, "tensor"), " of ",
                                   MemoryText(process.received_bytes)));
      }
      table.AddRow(std::move(row));
    }
    absl::StrAppend(&text_, "  processes\n", table.Text(4));
    if (phase_.rotating_copies > 1) {
      absl::StrAppend(&text_, "  steps overlap, with ", phase_.rotating_copies,
                      " copies of what crosses devices\n");
    } else if (phase_.processes.size() > 1 && !phase_.pipeline_refusal.empty()) {
      absl::StrAppend(&text_, "  steps do not overlap: ",
                      EscapedText(phase_.pipeline_refusal, kMaxTextBytes), "\n");
    }
  }

  void Nodes() {
    TextTable table("rrrlllll");
    table.AddRow({"node", "layer", "split", "op", "device", "cause", "name", "why"});
    for (const ExplainNode& node : phase_.nodes) {
      table.AddRow({absl::StrCat("%", node.id), node.layer < 0 ? "-" : absl::StrCat(node.layer),
                    absl::StrCat(node.split),
                    absl::StrCat(AbslView(OpName(node.op)), node.plain ? " (plain)" : ""),
                    Name(node.device), node.cause, Shown(node.label),
                    EscapedText(node.why, kMaxTextBytes)});
    }
    absl::StrAppend(&text_, "  nodes\n", table.Text(4));
  }

  const ExplainReport& report_;
  const ExplainPhase& phase_;
  const ExplainTextOptions& options_;
  std::string text_;
};

}  // namespace

std::string PhaseText(const ExplainReport& report, const ExplainPhase& phase,
                      const ExplainTextOptions& options) {
  return PhaseWriter(report, phase, options).Text();
}

}  // namespace weft
