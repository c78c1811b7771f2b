// What a fleet is: for `weft workers`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/device/device.h"
#include "coordinator/cluster/fleet.h"

namespace weft {

struct DeviceReport {
  std::string name;  // "w0.cpu0"
  std::string kind;
  std::string description;
  DeviceMemory memory;
  std::vector<std::string> quarantined;
};

struct WorkerReport {
  std::string name;  // "w0"
  std::string address;
  std::string host;  // as it calls itself
  std::string release;
  std::string protocol;  // "1.0"
  int32_t sessions = 0;  // beside ours
  bool has_cache = false;
  double ping_us = 0;  // least round trip of the control plane
  std::vector<DeviceReport> devices;
};

struct LinkReport {
  std::string a;
  std::string b;
  bool same_host = false;
  std::string transport;
  std::string error;  // why there are no figures
  double latency_us = 0;
  double bytes_per_s = 0;
};

struct FleetReport {
  std::vector<WorkerReport> workers;
  std::vector<LinkReport> links;
};

// `measure`: probe every link, which takes up to some tenths of a second each; no steps may be in
// flight.
FleetReport ReportFleet(Fleet& fleet, bool measure);

}  // namespace weft
