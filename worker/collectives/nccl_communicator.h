// One rank's place in a communicator of NCCL. Collectives are put on a stream in the order of the
// calls, which is the same on every rank; the result is there when the stream has come so far.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/tensor/dtype.h"
#include "worker/collectives/nccl_api.h"

namespace weft {

struct NcclPlace {
  NcclUniqueId id;
  int32_t rank = 0;
  int32_t ranks = 1;
};

// All but Abort on one thread. Memory is the device's. Types are F32, F16 and BF16.
class NcclCommunicator {
 public:
  // By one rank, for all.
  static absl::StatusOr<NcclUniqueId> MakeId(const NcclApi& api);

  // Comes back when all ranks have joined. `clock` outlives the communicator. Errors:
  // DEADLINE_EXCEEDED if some did not; those of NcclApi::StatusOf.
  static absl::StatusOr<std::unique_ptr<NcclCommunicator>> Join(std::shared_ptr<const NcclApi> api,
                                                                const NcclPlace& place,
                                                                Clock::TimePoint deadline,
                                                                const Clock& clock);
  // Gives up what is under way if it was aborted or failed.
  ~NcclCommunicator();
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  // --- Collectives ---
  // Return once the stream has them. Errors: INVALID_ARGUMENT for a type or counts that cannot be;
  // DEADLINE_EXCEEDED; CANCELLED after Abort; those of NcclApi::StatusOf. After one that is not
  // INVALID_ARGUMENT only Abort and the destructor may be called.

  // Sums of all ranks, on all. [elements] each; may be in place.
  absl::Status AllReduce(const void* from, void* to, int64_t elements, DType dtype,
                         NcclStream stream, Clock::TimePoint deadline);
  // All ranks' parts behind each other, on all. `from`: [counts[rank]]; `to`: [sum of counts].
  absl::Status AllGather(const void* from, void* to, absl::Span<const int64_t> counts, DType dtype,
                         NcclStream stream, Clock::TimePoint deadline);
  // This rank's part of the sums. `from`: [sum of counts]; `to`: [counts[rank]].
  absl::Status ReduceScatter(const void* from, void* to, absl::Span<const int64_t> counts,
                             DType dtype, NcclStream stream, Clock::TimePoint deadline);
  // What `root` has, on all. [elements].
  absl::Status Broadcast(const void* from, void* to, int64_t elements, DType dtype, int32_t root,
                         NcclStream stream, Clock::TimePoint deadline);

  // What went wrong since: a rank that is gone shows here, while the stream waits for it.
  absl::Status Check();

  // Frees this rank from what it waits for, on any thread. The others find out by Check.
  void Abort();

 private:
  NcclCommunicator(std::shared_ptr<const NcclApi> api, const NcclPlace& place, const Clock& clock)
      : api_(std::move(api)), place_(place), clock_(clock) {}

  const NcclFunctions& nccl() const { return api_->functions(); }
  // Makes a call, which does not block, and waits until the library is done with it.
  absl::Status Call(const char* name, Clock::TimePoint deadline,
                    absl::FunctionRef<NcclResultCode(NcclComm*)> function);
  absl::Status Await(NcclResultCode result, const char* name, Clock::TimePoint deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // One call for each rank's share, which begins at that byte of the whole, as one collective.
  absl::Status CallForEach(
      const char* name, absl::Span<const int64_t> counts, DType dtype, Clock::TimePoint deadline,
      absl::FunctionRef<NcclResultCode(NcclComm*, int32_t rank, int64_t at)> function);
  absl::Status CheckCounts(absl::Span<const int64_t> counts) const;

  const std::shared_ptr<const NcclApi> api_;
  const NcclPlace place_;
  const Clock& clock_;
  // Abort frees the library's object: held during every call.
  Mutex mutex_;
  CondVar changed_;
  NcclComm* comm_ ABSL_GUARDED_BY(mutex_) = nullptr;  // null once it was aborted
  bool failed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace weft
