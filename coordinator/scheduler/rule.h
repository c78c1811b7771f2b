// The rules of the scheduler by name. Each can be switched off, for tests that show what it does
// and for people who look for the cause of a placement.
#pragma once

#include <bitset>
#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace weft {

enum class Rule : uint8_t {
  kViewSource,       // what writes or shows bound memory is where that memory is
  kInput,            // inputs belong to the last device
  kWeight,           // a node is where its first weight is
  kExemptRope,       // except rope, whose only weight is a small vector
  kExemptAttention,  // and attention, whose only weights are sinks and slopes
  kWeightHost,       // and on the machine of it, wherever else it might run
  kOffload,          // a device that wants a node takes it although its weight lies in host memory
  kBatch,            // devices take the batches that they prefer
  kSweepForward,     // accelerators spread to later nodes
  kSweepBackward,    // and to earlier ones
  kSweepAllForward,  // then every device does, processors too
  kSweepAllBackward,
  kHostStops,     // a processor's node ends the first two sweeps
  kLayerHost,     // no sweep takes a device into a layer that other machines hold
  kGuess,         // what is left goes where most sources can be read
  kTieHost,       // ties go to the machine that holds the sources
  kUpgrade,       // a device before this one with the same memory takes its nodes
  kInherit,       // views follow their roots, free leafs their readers
  kStagedLimit,   // a split ends where staged weights would exceed the limit
  kDirectRead,    // no copy where a device reads the producer's memory
  kReuseReplica,  // a tensor is copied to a device once
  kExpertCopies,  // of expert weights in host memory only used experts are copied
  kFuse,          // plain ops become fused ones
  kInPlace,       // results may take over the memory of a source
};
inline constexpr int kRuleCount = 24;

// "offload", "sweep-forward", ...
std::string_view RuleName(Rule rule);
absl::Span<const Rule> AllRules();
// Errors: INVALID_ARGUMENT listing the names there are.
absl::StatusOr<Rule> ParseRule(std::string_view name);

// Rules that are switched off.
class RuleSet {
 public:
  void Add(Rule rule) { bits_.set(static_cast<size_t>(rule)); }
  bool Has(Rule rule) const { return bits_.test(static_cast<size_t>(rule)); }
  friend bool operator==(const RuleSet&, const RuleSet&) = default;

 private:
  std::bitset<kRuleCount> bits_;
};

}  // namespace weft
