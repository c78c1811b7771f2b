#include "coordinator/placement/override_rules.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/absl_view.h"
#include "common/base/status_macros.h"

namespace weft {
namespace {

std::string RuleText(const OverrideRule& rule) {
  return absl::StrCat("-ot '", rule.pattern, "=", rule.device, "'");
}

absl::StatusOr<int32_t> FindDevice(const OverrideRule& rule, absl::Span<Device* const> devices) {
  if (rule.device == "cpu") return OverrideRules::kHostCpu;
  for (size_t i = 0; i < devices.size(); ++i) {
    if (devices[i]->name() != rule.device) continue;
    if (devices[i]->kind() != DeviceKind::kAccelerator) return static_cast<int32_t>(i);
    return absl::InvalidArgumentError(
        absl::StrCat(RuleText(rule), ": ", rule.device,
                     " computes in its host's memory and holds nothing; say cpu"));
  }
  const std::string names = absl::StrJoin(
      devices, ", ", [](std::string* out, const Device* device) { out->append(device->name()); });
  return absl::InvalidArgumentError(
      absl::StrCat(RuleText(rule), ": no device '", rule.device, "'; there are: cpu, ", names));
}

}  // namespace

absl::StatusOr<OverrideRules> OverrideRules::Compile(const std::vector<OverrideRule>& rules,
                                                     absl::Span<Device* const> devices) {
  if (rules.size() > kMaxOverrideRules) {
    return absl::InvalidArgumentError(
        absl::StrCat("-ot: ", rules.size(), " rules, the limit is ", kMaxOverrideRules));
  }
  OverrideRules result;
  for (const OverrideRule& rule : rules) {
    if (rule.pattern.empty() || rule.pattern.size() > kMaxPatternBytes) {
      return absl::InvalidArgumentError(absl::StrCat("-ot: a pattern of ", rule.pattern.size(),
                                                     " bytes, want 1 to ", kMaxPatternBytes));
    }
    Compiled compiled{rule, nullptr};
    ASSIGN_OR_RETURN(compiled.device, FindDevice(rule, devices));
    auto expression = RegularExpression::Create(rule.pattern, RegularExpressionMode::kSearch);
    if (!expression.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(RuleText(rule), ": ", expression.status().message()));
    }
    compiled.expression = *std::move(expression);
    result.rules_.push_back(std::move(compiled));
  }
  return result;
}

absl::StatusOr<std::optional<OverrideRules::Match>> OverrideRules::Find(std::string_view name) {
  std::optional<Match> match;
  for (size_t i = 0; i < rules_.size(); ++i) {
    Compiled& compiled = rules_[i];
    if (match.has_value() && compiled.matched) continue;
    const absl::StatusOr<bool> found = compiled.expression->Contains(name);
    if (!found.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(
          RuleText(compiled.rule), ": on '", AbslView(name), "': ", found.status().message()));
    }
    if (!*found) continue;
    compiled.matched = true;
    if (match.has_value()) continue;
    compiled.taken = true;
    match = Match{static_cast<int32_t>(i), compiled.device};
  }
  return match;
}

std::string OverrideRules::Text(int32_t rule) const { return RuleText(rules_[rule].rule); }

std::vector<PlacementRemark> OverrideRules::Remarks() const {
  std::vector<PlacementRemark> remarks;
  for (const Compiled& compiled : rules_) {
    if (compiled.taken) continue;
    const std::string rule = RuleText(compiled.rule);
    if (compiled.matched) {
      remarks.push_back({PlacementRemarkKind::kRuleShadowed,
                         absl::StrCat(rule, " matches only weights that earlier rules take")});
    } else {
      remarks.push_back(
          {PlacementRemarkKind::kRuleWithoutMatch, absl::StrCat(rule, " matches no weight")});
    }
  }
  return remarks;
}

}  // namespace weft
