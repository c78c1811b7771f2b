#include "coordinator/placement/device_batch.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/absl_view.h"
#include "common/base/status_macros.h"

namespace weft {
namespace {

constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

absl::Status BadItem(std::string_view item) {
  return absl::InvalidArgumentError(
      absl::StrCat("--device-batch: '", AbslView(item.substr(0, 256)),
                   "': want DEVICE:RANGE with a range like 8-64, 8-, -64 or 8"));
}

// False unless `text` is a number of tokens.
bool ParseTokens(std::string_view text, int64_t& tokens) {
  return text.find_first_not_of("0123456789") == std::string_view::npos &&
         absl::SimpleAtoi(AbslView(text), &tokens) && tokens >= 1;
}

// False unless `text` is a range.
bool ParseRange(std::string_view text, BatchRange& range) {
  const size_t dash = text.find('-');
  if (dash == std::string_view::npos) {
    if (!ParseTokens(text, range.min)) return false;
    range.max = range.min;
    return true;
  }
  const std::string_view first = text.substr(0, dash);
  const std::string_view last = text.substr(dash + 1);
  if (first.empty() && last.empty()) return false;
  if (!first.empty() && !ParseTokens(first, range.min)) return false;
  if (!last.empty() && !ParseTokens(last, range.max)) return false;
  return range.min <= range.max;
}

std::string RangeText(const BatchRange& range) {
  return range.max == kUnlimited ? absl::StrCat(range.min, "-")
                                 : absl::StrCat(range.min, "-", range.max);
}

// One range of the ranges of a device.
absl::StatusOr<BatchRange> Join(const Device& device, std::vector<BatchRange> ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const BatchRange& a, const BatchRange& b) { return a.min < b.min; });
  BatchRange joined = ranges.front();
  for (const BatchRange& next : absl::MakeConstSpan(ranges).subspan(1)) {
    const bool overlaps = next.min <= joined.max;
    if (overlaps || next.min != joined.max + 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--device-batch: ", RangeText(joined), " and ", RangeText(next), " of ", device.name(),
          overlaps ? " overlap" : " leave a gap; a device has one range"));
    }
    joined.max = next.max;
  }
  return joined;
}

}  // namespace

absl::StatusOr<std::vector<DeviceBatchRule>> ParseDeviceBatches(std::string_view text) {
  std::vector<DeviceBatchRule> rules;
  if (text.empty()) return rules;
  for (const absl::string_view piece : absl::StrSplit(AbslView(text), ',')) {
    const std::string_view item = StdView(piece);
    const size_t colon = item.rfind(':');
    DeviceBatchRule rule;
    if (colon == std::string_view::npos || colon == 0 || colon + 1 == item.size() ||
        !ParseRange(item.substr(colon + 1), rule.range)) {
      return BadItem(item);
    }
    rule.device = item.substr(0, colon);
    rules.push_back(std::move(rule));
  }
  return rules;
}

absl::StatusOr<std::vector<BatchRange>> ResolveDeviceBatches(
    absl::Span<const DeviceBatchRule> rules, absl::Span<Device* const> devices) {
  std::vector<std::vector<BatchRange>> wanted(devices.size());
  for (const DeviceBatchRule& rule : rules) {
    bool found = false;
    for (size_t i = 0; i < devices.size(); ++i) {
      const bool every_cpu = rule.device == "cpu" && devices[i]->kind() == DeviceKind::kCpu;
      if (!every_cpu && devices[i]->name() != rule.device) continue;
      wanted[i].push_back(rule.range);
      found = true;
    }
    if (!found) {
      const std::string names = absl::StrJoin(
          devices, ", ", [](std::string* out, const Device* d) { out->append(d->name()); });
      return absl::InvalidArgumentError(
          absl::StrCat("--device-batch: no device '", rule.device, "'; there are: cpu, ", names));
    }
  }
  std::vector<BatchRange> ranges(devices.size());
  for (size_t i = 0; i < devices.size(); ++i) {
    ranges[i] = devices[i]->preferred_batch();
    if (wanted[i].empty()) continue;
    ASSIGN_OR_RETURN(ranges[i], Join(*devices[i], std::move(wanted[i])));
  }
  return ranges;
}

}  // namespace weft
