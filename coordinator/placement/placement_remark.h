// What a user should know about a placement: in words, and of which kind, so that a report can say
// what to do about it.
#pragma once

#include <cstdint>
#include <string>

namespace weft {

enum class PlacementRemarkKind : uint8_t {
  kRuleWithoutMatch,  // a rule of -ot matches no weight
  kRuleShadowed,      // or only weights that earlier rules take
  kFlagWithoutEffect,
  kCachesOnHost,    // because --no-kv-offload says so
  kRefusedCaches,   // or because the layer's device cannot use them
  kRefusedWeights,  // a device refuses what reads weights of a type
  kIdleDevices,
  kTooLittleMemory,
};

struct PlacementRemark {
  PlacementRemarkKind kind = PlacementRemarkKind::kFlagWithoutEffect;
  std::string text;
};

}  // namespace weft
