// Rules "weights whose name matches go to that device", compiled against a list of devices.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/device/device.h"
#include "common/regex/regular_expression.h"
#include "coordinator/placement/placement_options.h"
#include "coordinator/placement/placement_remark.h"

namespace weft {

// Longest pattern in bytes, and most rules: far more than anybody types.
inline constexpr size_t kMaxPatternBytes = 4096;
inline constexpr size_t kMaxOverrideRules = 4096;

class OverrideRules {
 public:
  // A device of a rule that means the CPU of the host of the weight's layer.
  static constexpr int32_t kHostCpu = -1;

  struct Match {
    int32_t rule = 0;
    int32_t device = kHostCpu;
  };

  // Errors: INVALID_ARGUMENT naming the rule: a pattern that is no regular expression, a device
  // that is not there (listing those that are) or that holds nothing.
  static absl::StatusOr<OverrideRules> Compile(const std::vector<OverrideRule>& rules,
                                               absl::Span<Device* const> devices);

  // The first rule whose pattern is found in `name`. Errors: INVALID_ARGUMENT if a pattern tries
  // too much.
  absl::StatusOr<std::optional<Match>> Find(std::string_view name);

  // "-ot 'exps=cpu'".
  std::string Text(int32_t rule) const;
  // One line for each rule that no Find so far returned.
  std::vector<PlacementRemark> Remarks() const;

 private:
  struct Compiled {
    OverrideRule rule;
    std::unique_ptr<RegularExpression> expression;
    int32_t device = kHostCpu;
    bool matched = false;  // some name, even one that an earlier rule took
    bool taken = false;
  };
  std::vector<Compiled> rules_;
};

}  // namespace weft
