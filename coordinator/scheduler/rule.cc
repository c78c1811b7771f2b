#include "coordinator/scheduler/rule.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"

namespace weft {
namespace {

struct RuleRow {
  Rule rule;
  std::string_view name;
};

constexpr std::array<RuleRow, kRuleCount> kRows = {{
    {Rule::kViewSource, "view-source"},
    {Rule::kInput, "input"},
    {Rule::kWeight, "weight"},
    {Rule::kExemptRope, "exempt-rope"},
    {Rule::kExemptAttention, "exempt-attention"},
    {Rule::kWeightHost, "weight-host"},
    {Rule::kOffload, "offload"},
    {Rule::kBatch, "batch"},
    {Rule::kSweepForward, "sweep-forward"},
    {Rule::kSweepBackward, "sweep-backward"},
    {Rule::kSweepAllForward, "sweep-all-forward"},
    {Rule::kSweepAllBackward, "sweep-all-backward"},
    {Rule::kHostStops, "host-stops"},
    {Rule::kLayerHost, "layer-host"},
    {Rule::kGuess, "guess"},
    {Rule::kTieHost, "tie-host"},
    {Rule::kUpgrade, "upgrade"},
    {Rule::kInherit, "inherit"},
    {Rule::kStagedLimit, "staged-limit"},
    {Rule::kDirectRead, "direct-read"},
    {Rule::kReuseReplica, "reuse-replica"},
    {Rule::kExpertCopies, "expert-copies"},
    {Rule::kFuse, "fuse"},
    {Rule::kInPlace, "in-place"},
}};

constexpr bool RowsMatchEnum() {
  for (size_t i = 0; i < kRows.size(); ++i) {
    if (static_cast<size_t>(kRows[i].rule) != i || kRows[i].name.empty()) return false;
  }
  return true;
}
static_assert(RowsMatchEnum());

constexpr std::array<Rule, kRuleCount> MakeAll() {
  std::array<Rule, kRuleCount> all{};
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<Rule>(i);
  return all;
}
constexpr std::array<Rule, kRuleCount> kAll = MakeAll();

}  // namespace

std::string_view RuleName(Rule rule) { return kRows[static_cast<size_t>(rule)].name; }

absl::Span<const Rule> AllRules() { return kAll; }

absl::StatusOr<Rule> ParseRule(std::string_view name) {
  std::string known;
  for (const RuleRow& row : kRows) {
    if (row.name == name) return row.rule;
    absl::StrAppend(&known, known.empty() ? "" : ", ", AbslView(row.name));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("no scheduler rule '", AbslView(name.substr(0, 64)), "'; there are ", known));
}

}  // namespace weft
