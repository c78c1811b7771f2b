#include "coordinator/cluster/fleet_report.h"

#include <chrono>

#include "absl/strings/str_cat.h"
#include "rpc_backend/client/remote_device.h"

namespace weft {
namespace {

WorkerReport Describe(RemoteWorker& worker) {
  WorkerReport report;
  const RemoteWorkerInfo& info = worker.info();
  report.name = worker.name();
  report.address = worker.address().Text();
  report.host = info.name;
  report.release = info.release;
  report.protocol = absl::StrCat(info.protocol_major, ".", info.protocol_minor);
  report.sessions = info.sessions;
  report.has_cache = info.has_cache;
  report.ping_us = worker.pings().least_us;
  for (const RemoteDevice* device : worker.remote_devices()) {
    const std::string_view kind = DeviceKindName(device->kind());
    report.devices.push_back({device->name(), std::string(kind), device->description(),
                              device->memory(), device->info().quarantined});
  }
  return report;
}

}  // namespace

FleetReport ReportFleet(Fleet& fleet, bool measure) {
  FleetReport report;
  if (measure && fleet.worker_count() > 0) {
    // Slow networks need longer for both.
    const std::chrono::milliseconds time = fleet.worker(0).options().loss_after;
    for (const PairMeasurement& link : fleet.link().MeasureLinks(time)) {
      report.links.push_back(
          {fleet.link().name(link.pair.a), fleet.link().name(link.pair.b), link.pair.same_host,
           link.transport, std::string(link.status.message()), link.latency_us, link.bytes_per_s});
    }
  }
  // Afterwards, so that pings were answered.
  for (int32_t i = 0; i < fleet.worker_count(); ++i) {
    report.workers.push_back(Describe(fleet.worker(i)));
  }
  return report;
}

}  // namespace weft
