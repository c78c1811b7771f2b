#include "coordinator/cluster/fleet_weights.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/mutex.h"
#include "common/base/status_macros.h"
#include "common/base/thread.h"
#include "common/digest/file_identity.h"
#include "coordinator/cluster/known_digests.h"
#include "rpc_backend/client/remote_device.h"
#include "rpc_backend/client/remote_weights.h"

namespace weft {
namespace {

// Sums what several workers report, for one caller who may cancel.
class SharedProgress {
 public:
  SharedProgress(size_t workers, const LoadProgress& progress)
      : done_(workers), total_(workers), progress_(progress) {}

  void Update(size_t worker, int64_t done, int64_t total) {
    MutexLock lock(mutex_);
    done_[worker] = done;
    total_[worker] = total;
    int64_t all_done = 0;
    int64_t all = 0;
    for (size_t i = 0; i < done_.size(); ++i) {
      all_done += done_[i];
      all += total_[i];
    }
    if (progress_ && !cancelled_.load() && !progress_(all_done, all)) cancelled_.store(true);
  }
  // What a worker has to load at all, so that the sum does not grow while others start.
  void Expect(size_t worker, int64_t total) {
    MutexLock lock(mutex_);
    total_[worker] = total;
  }
  const std::atomic<bool>& cancelled() const { return cancelled_; }
  void Cancel() { cancelled_.store(true); }

 private:
  Mutex mutex_;
  std::vector<int64_t> done_ ABSL_GUARDED_BY(mutex_);
  std::vector<int64_t> total_ ABSL_GUARDED_BY(mutex_);
  std::atomic<bool> cancelled_ = false;
  const LoadProgress& progress_;
};

// What one worker is to load. Weights of one device that are the same bytes of the file are there
// once.
struct WorkerJob {
  RemoteWorker* worker = nullptr;
  std::vector<RemoteWeightItem> items;
  int64_t bytes = 0;
  absl::StatusOr<RemoteWeights> loaded = absl::UnknownError("not loaded");
};

absl::StatusOr<std::vector<RemoteWeightFile>> DescribeFiles(const Model& model) {
  std::vector<RemoteWeightFile> files;
  for (int32_t i = 0; i < model.file().file_count(); ++i) {
    const MappedFile& file = model.file().file(i);
    ASSIGN_OR_RETURN(const FileIdentity identity, IdentifyGguf(model.file(), i));
    files.push_back({file.path(), identity.size, identity.digest.Raw(), identity.data_offset});
  }
  return files;
}

// What each worker is to load for `weights`, and where each of them will be found.
struct LoadPlan {
  std::vector<WorkerJob> jobs;                    // by worker
  std::vector<std::pair<size_t, size_t>> places;  // per weight: its worker, its item there
};

LoadPlan PlanLoad(const Model& model, FleetLink& link, const KnownDigests& digests,
                  absl::Span<const ForeignWeight> weights) {
  LoadPlan plan;
  plan.jobs.resize(static_cast<size_t>(link.worker_count()));
  absl::flat_hash_map<const Device*, std::pair<size_t, int32_t>> positions;
  for (size_t w = 0; w < plan.jobs.size(); ++w) {
    plan.jobs[w].worker = &link.worker(static_cast<int32_t>(w));
    for (const RemoteDevice* device : plan.jobs[w].worker->remote_devices()) {
      positions[device] = {w, device->position()};
    }
  }
  absl::flat_hash_map<std::tuple<const Device*, std::vector<std::pair<int32_t, ByteRun>>>, size_t>
      seen;
  for (const ForeignWeight& weight : weights) {
    const auto [w, position] = positions.at(weight.device);
    WorkerJob& job = plan.jobs[w];
    std::vector<std::pair<int32_t, ByteRun>> runs;
    runs.reserve(weight.runs.size());
    for (const FileRun& from : weight.runs) runs.emplace_back(from.file, from.run);
    const auto [first, is_new] =
        seen.try_emplace({weight.device, std::move(runs)}, job.items.size());
    plan.places.emplace_back(w, first->second);
    if (!is_new) continue;
    const Weight& described = model.weights()[weight.weight];
    RemoteWeightItem item;
    item.weight = weight.id;
    item.device = position;
    item.reserve_bytes = weight.device->buffer_type().TensorBytes(weight.layout);
    item.name = described.name;
    for (const auto& [file, run] : weight.runs) {
      for (int64_t piece = 0; piece < run.count; ++piece) {
        item.slices.push_back({file, run.offset + piece * run.stride, run.bytes});
        job.bytes += run.bytes;
      }
    }
    item.digests = digests.Of(item.slices);
    job.items.push_back(std::move(item));
  }
  return plan;
}

// "worker w0 (...): 12 weights of 345 bytes, 100 bytes from other workers, 23 from here".
std::string SourcesText(const WorkerJob& job) {
  return absl::StrCat(job.worker->label(), ": ", job.items.size(), " weights of ", job.bytes,
                      " bytes, ", job.loaded->bytes_from_peers, " bytes from other workers, ",
                      job.loaded->bytes_streamed, " from here");
}

// All workers at the same time. Errors: the first that is not the cancellation it caused.
absl::Status RunJobs(const Model& model, FleetLink& link, bool ignore_files,
                     const LoadProgress& progress, std::vector<WorkerJob>& jobs) {
  ASSIGN_OR_RETURN(const std::vector<RemoteWeightFile> files, DescribeFiles(model));
  const SliceReader reader =
      [&model](const RemoteWeightSlice& slice) -> absl::StatusOr<absl::Span<const uint8_t>> {
    return model.file()
        .file(slice.file)
        .bytes()
        .subspan(static_cast<size_t>(slice.offset), static_cast<size_t>(slice.bytes));
  };
  SharedProgress shared(jobs.size(), progress);
  for (size_t w = 0; w < jobs.size(); ++w) shared.Expect(w, jobs[w].bytes);
  std::vector<std::thread> threads;
  absl::Status started;
  for (size_t w = 0; w < jobs.size() && started.ok(); ++w) {
    if (jobs[w].items.empty()) continue;
    absl::StatusOr<std::thread> thread = StartThread([&, w] {
      LoadRemoteWeightsOptions options;
      options.ignore_files = ignore_files;
      options.cancel = &shared.cancelled();
      options.progress = [&shared, w](const RemoteLoadProgress& at) {
        shared.Update(w, at.bytes_done, at.bytes_total);
      };
      jobs[w].loaded =
          LoadRemoteWeights(link, static_cast<int32_t>(w), files, jobs[w].items, reader, options);
      if (!jobs[w].loaded.ok()) shared.Cancel();  // the others need not go on
    });
    started = thread.status();
    if (thread.ok()) {
      threads.push_back(*std::move(thread));
    } else {
      shared.Cancel();
    }
  }
  for (std::thread& thread : threads) thread.join();
  RETURN_IF_ERROR(started);
  absl::Status failed;
  for (const WorkerJob& job : jobs) {
    if (job.items.empty() || job.loaded.ok()) continue;
    if (failed.ok() || absl::IsCancelled(failed)) failed = job.loaded.status();
  }
  return failed;
}

}  // namespace

bool FleetWeights::Holds(const Device& device) const {
  for (int32_t w = 0; w < link_.worker_count(); ++w) {
    const absl::Span<Device* const> devices = link_.worker(w).devices();
    if (std::find(devices.begin(), devices.end(), &device) != devices.end()) return true;
  }
  return false;
}

absl::StatusOr<ForeignResult> FleetWeights::Load(const Model& model,
                                                 absl::Span<const ForeignWeight> weights,
                                                 const LoadProgress& progress) {
  LoadPlan plan = PlanLoad(model, link_, KnownDigests(model.file(), logger_), weights);
  RETURN_IF_ERROR(RunJobs(model, link_, ignore_files_, progress, plan.jobs));
  ForeignResult result;
  for (size_t i = 0; i < weights.size(); ++i) {
    const auto [worker, item] = plan.places[i];
    const RemoteWeight& loaded = plan.jobs[worker].loaded->weights[item];
    result.bindings.push_back({SlotKind::kWeight, weights[i].id, loaded.buffer, loaded.offset});
  }
  for (WorkerJob& job : plan.jobs) {
    if (job.items.empty()) continue;
    for (const std::string& remark : job.loaded->remarks) {
      logger_.Warning(StdView(absl::StrCat(job.worker->label(), ": ", remark)));
    }
    logger_.Debug(StdView(SourcesText(job)));
    for (std::unique_ptr<Buffer>& buffer : job.loaded->buffers) {
      result.buffers.push_back(std::move(buffer));
    }
  }
  return result;
}

}  // namespace weft
