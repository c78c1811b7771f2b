#include "coordinator/explain/collectives_text.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/absl_view.h"
#include "common/base/escaped_text.h"
#include "coordinator/explain/memory_text.h"
#include "coordinator/explain/text_table.h"

namespace weft {
namespace {

constexpr size_t kMaxNameBytes = 128;

std::string PerToken(int64_t bytes, const ExplainPhase& phase) {
  return absl::StrCat(MemoryText(bytes / phase.tokens), " per token");
}

// "12 us expected, by parts 24 us".
std::string Expected(const ExplainCollective& collective) {
  std::string chosen;
  std::string others;
  for (const AllReducePrediction& prediction : collective.predictions) {
    const std::string time = absl::StrFormat("%.1f us", prediction.microseconds);
    if (prediction.algorithm == collective.algorithm) {
      chosen = absl::StrCat("expected ", time);
    } else {
      absl::StrAppend(&others, ", ", AbslView(CollectiveAlgorithmName(prediction.algorithm)), " ",
                      time);
    }
  }
  return chosen + others;
}

std::string AlgorithmText(const ExplainCollective& collective) {
  return collective.kind == CollectiveKind::kAllReduce
             ? std::string(CollectiveAlgorithmName(collective.algorithm))
             : "";
}

}  // namespace

std::string CollectivesText(const ExplainReport& report, const ExplainPhase& phase) {
  if (phase.collectives.empty()) return "";
  TextTable table("llrrlrrl");
  int64_t steps = 0;
  int64_t bytes = 0;
  for (const ExplainCollective& c : phase.collectives) {
    steps += c.count * c.steps;
    bytes += c.count * c.bytes;
    table.AddRow({EscapedText(c.group, kMaxNameBytes), std::string(CollectiveKindName(c.kind)),
                  absl::StrCat("x", c.count),
                  absl::StrCat(c.elements, " ", AbslView(DTypeName(c.wire))), AlgorithmText(c),
                  absl::StrCat(c.steps, c.steps == 1 ? " step" : " steps"),
                  absl::StrCat(c.messages, c.messages == 1 ? " message" : " messages", " of ",
                               MemoryText(c.bytes)),
                  Expected(c)});
  }
  TextTable ranks("lrr");
  for (const ExplainRankTraffic& rank : phase.rank_traffic) {
    ranks.AddRow(
        {EscapedText(report.devices[rank.device].name, kMaxNameBytes),
         absl::StrCat("sends ", rank.messages, rank.messages == 1 ? " message" : " messages",
                      " of ", MemoryText(rank.bytes)),
         PerToken(rank.bytes, phase)});
  }
  return absl::StrCat("  between ranks, per step: ", steps, " steps of messages, ",
                      MemoryText(bytes), " in all, ", PerToken(bytes, phase), "\n", table.Text(4),
                      ranks.Text(4));
}

}  // namespace weft
