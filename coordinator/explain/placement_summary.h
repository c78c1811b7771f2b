// Where a model lies and why, of a placement that is in use: short enough for a page that is shown
// while it runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/device/device.h"
#include "coordinator/engine/model_plan.h"
#include "coordinator/explain/held_bytes.h"
#include "coordinator/models/model.h"

namespace weft {

// Most entries of PlacementSummary::strays and ::remarks; the rest is counted.
inline constexpr size_t kMostSummaryLines = 64;

struct SummaryDevice {
  std::string name;
  std::string kind;
  std::string host;
  std::string description;
  DeviceMemory memory;  // as the device says
  HeldBytes held;
};

// Devices that compute each layer together.
struct SummaryGroup {
  std::string name;
  std::vector<std::string> ranks;  // names of devices
  std::vector<double> shares;      // of the work, by rank; they sum to 1
};

// Consecutive layers on one device.
struct SummaryLayers {
  enum class Part : uint8_t { kInput, kLayers, kOutput };
  Part part = Part::kLayers;
  int64_t first = 0;  // of kLayers
  int64_t last = 0;
  std::string device;  // or group
  std::string why;
};

// Weights or caches that are not where their layer is, all for one reason.
struct SummaryStray {
  std::string first;  // the name of the first of them
  int64_t count = 0;
  std::string device;
  std::string why;
};

struct PlacementSummary {
  std::vector<SummaryDevice> devices;
  std::vector<SummaryGroup> groups;
  std::vector<SummaryLayers> layers;  // input, layers, output
  std::vector<SummaryStray> strays;
  int64_t strays_left_out = 0;
  std::vector<std::string> remarks;
};

// Errors: those of HoldSlices and CountHeldBytes.
absl::StatusOr<PlacementSummary> SummarizePlacement(const Model& model, const PlacedDevices& placed,
                                                    const CacheShape& caches);

}  // namespace weft
