#include "worker/collectives/nccl_communicator.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/status_macros.h"

namespace weft {
namespace {

// Between looks at a call that is under way.
constexpr std::chrono::microseconds kLook{200};

absl::StatusOr<NcclType> TypeOf(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return NcclType::kFloat;
    case DType::kF16:
      return NcclType::kHalf;
    case DType::kBF16:
      return NcclType::kBfloat16;
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("NCCL does not reduce ", AbslView(DTypeName(dtype))));
  }
}

absl::Status CheckElements(int64_t elements) {
  if (elements >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("a collective of ", elements, " elements"));
}

bool AllEqual(absl::Span<const int64_t> counts) {
  return std::all_of(counts.begin(), counts.end(), [&](int64_t n) { return n == counts[0]; });
}

const void* At(const void* base, int64_t bytes) { return static_cast<const char*>(base) + bytes; }
void* At(void* base, int64_t bytes) { return static_cast<char*>(base) + bytes; }

}  // namespace

absl::StatusOr<NcclUniqueId> NcclCommunicator::MakeId(const NcclApi& api) {
  NcclUniqueId id;
  RETURN_IF_ERROR(api.StatusOf(api.functions().get_unique_id(&id), "ncclGetUniqueId"));
  return id;
}

absl::StatusOr<std::unique_ptr<NcclCommunicator>> NcclCommunicator::Join(
    std::shared_ptr<const NcclApi> api, const NcclPlace& place, Clock::TimePoint deadline,
    const Clock& clock) {
  if (place.rank < 0 || place.rank >= place.ranks) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", place.rank, " of a communicator of ", place.ranks));
  }
  std::unique_ptr<NcclCommunicator> joined(new NcclCommunicator(std::move(api), place, clock));
  {
    MutexLock lock(joined->mutex_);
    NcclConfig config;
    const NcclResultCode result =
        joined->nccl().init_rank(&joined->comm_, place.ranks, place.id, place.rank, &config);
    RETURN_IF_ERROR(joined->Await(result, "ncclCommInitRankConfig", deadline));
  }
  return joined;
}

NcclCommunicator::~NcclCommunicator() {
  MutexLock lock(mutex_);
  if (comm_ == nullptr) return;
  // Destroying waits for what is under way, which may never end.
  static_cast<void>(failed_ ? nccl().abort(comm_) : nccl().destroy(comm_));
}

absl::Status NcclCommunicator::Await(NcclResultCode result, const char* name,
                                     Clock::TimePoint deadline) {
  while (result == static_cast<NcclResultCode>(NcclResult::kInProgress)) {
    const Clock::TimePoint now = clock_.Now();
    if (now >= deadline) {
      failed_ = true;
      return absl::DeadlineExceededError(
          absl::StrCat(name, ": other ranks of rank ", place_.rank, " did not come in time"));
    }
    changed_.WaitUntil(mutex_, std::min(deadline, now + kLook));
    if (comm_ == nullptr) return absl::CancelledError(absl::StrCat(name, ": aborted"));
    const NcclResultCode asked = nccl().async_error(comm_, &result);
    if (asked != static_cast<NcclResultCode>(NcclResult::kSuccess)) result = asked;
  }
  absl::Status status = api_->StatusOf(result, name);
  failed_ = failed_ || !status.ok();
  return status;
}

absl::Status NcclCommunicator::Call(const char* name, Clock::TimePoint deadline,
                                    absl::FunctionRef<NcclResultCode(NcclComm*)> function) {
  MutexLock lock(mutex_);
  if (comm_ == nullptr) return absl::CancelledError(absl::StrCat(name, ": aborted"));
  return Await(function(comm_), name, deadline);
}

absl::Status NcclCommunicator::CallForEach(
    const char* name, absl::Span<const int64_t> counts, DType dtype, Clock::TimePoint deadline,
    absl::FunctionRef<NcclResultCode(NcclComm*, int32_t rank, int64_t at)> function) {
  const int64_t width = GetDTypeInfo(dtype).block_bytes;
  return Call(name, deadline, [&](NcclComm* comm) {
    NcclResultCode result = nccl().group_start();
    int64_t at = 0;
    for (int32_t rank = 0; rank < place_.ranks; ++rank) {
      // A group that was begun is ended, whatever happens in it.
      if (result == 0 && counts[rank] > 0) result = function(comm, rank, at);
      at += counts[rank] * width;
    }
    const NcclResultCode ended = nccl().group_end();
    return result == 0 ? ended : result;
  });
}

absl::Status NcclCommunicator::CheckCounts(absl::Span<const int64_t> counts) const {
  if (std::ssize(counts) != place_.ranks) {
    return absl::InvalidArgumentError(
        absl::StrCat(counts.size(), " counts for ", place_.ranks, " ranks"));
  }
  for (const int64_t count : counts) RETURN_IF_ERROR(CheckElements(count));
  return absl::OkStatus();
}

absl::Status NcclCommunicator::AllReduce(const void* from, void* to, int64_t elements, DType dtype,
                                         NcclStream stream, Clock::TimePoint deadline) {
  ASSIGN_OR_RETURN(const NcclType type, TypeOf(dtype));
  RETURN_IF_ERROR(CheckElements(elements));
  return Call("ncclAllReduce", deadline, [&](NcclComm* comm) {
    return nccl().all_reduce(from, to, static_cast<size_t>(elements), type, NcclReduction::kSum,
                             comm, stream);
  });
}

absl::Status NcclCommunicator::AllGather(const void* from, void* to,
                                         absl::Span<const int64_t> counts, DType dtype,
                                         NcclStream stream, Clock::TimePoint deadline) {
  ASSIGN_OR_RETURN(const NcclType type, TypeOf(dtype));
  RETURN_IF_ERROR(CheckCounts(counts));
  if (AllEqual(counts)) {
    return Call("ncclAllGather", deadline, [&](NcclComm* comm) {
      return nccl().all_gather(from, to, static_cast<size_t>(counts[0]), type, comm, stream);
    });
  }
  // The library knows equal parts only.
  return CallForEach(
      "ncclBroadcast", counts, dtype, deadline, [&](NcclComm* comm, int32_t rank, int64_t at) {
        const void* source = rank == place_.rank ? from : At(to, at);
        return nccl().broadcast(source, At(to, at), static_cast<size_t>(counts[rank]), type, rank,
                                comm, stream);
      });
}

absl::Status NcclCommunicator::ReduceScatter(const void* from, void* to,
                                             absl::Span<const int64_t> counts, DType dtype,
                                             NcclStream stream, Clock::TimePoint deadline) {
  ASSIGN_OR_RETURN(const NcclType type, TypeOf(dtype));
  RETURN_IF_ERROR(CheckCounts(counts));
  if (AllEqual(counts)) {
    return Call("ncclReduceScatter", deadline, [&](NcclComm* comm) {
      return nccl().reduce_scatter(from, to, static_cast<size_t>(counts[0]), type,
                                   NcclReduction::kSum, comm, stream);
    });
  }
  return CallForEach("ncclReduce", counts, dtype, deadline,
                     [&](NcclComm* comm, int32_t rank, int64_t at) {
                       return nccl().reduce(At(from, at), to, static_cast<size_t>(counts[rank]),
                                            type, NcclReduction::kSum, rank, comm, stream);
                     });
}

absl::Status NcclCommunicator::Broadcast(const void* from, void* to, int64_t elements, DType dtype,
                                         int32_t root, NcclStream stream,
                                         Clock::TimePoint deadline) {
  ASSIGN_OR_RETURN(const NcclType type, TypeOf(dtype));
  RETURN_IF_ERROR(CheckElements(elements));
  if (root < 0 || root >= place_.ranks) {
    return absl::InvalidArgumentError(absl::StrCat("root ", root, " of ", place_.ranks, " ranks"));
  }
  return Call("ncclBroadcast", deadline, [&](NcclComm* comm) {
    return nccl().broadcast(from, to, static_cast<size_t>(elements), type, root, comm, stream);
  });
}

absl::Status NcclCommunicator::Check() {
  MutexLock lock(mutex_);
  if (comm_ == nullptr) return absl::CancelledError("the communicator was aborted");
  NcclResultCode result = 0;
  const NcclResultCode asked = nccl().async_error(comm_, &result);
  if (asked != 0) result = asked;
  if (result == static_cast<NcclResultCode>(NcclResult::kInProgress)) return absl::OkStatus();
  absl::Status status = api_->StatusOf(result, "a collective");
  failed_ = failed_ || !status.ok();
  return status;
}

void NcclCommunicator::Abort() {
  MutexLock lock(mutex_);
  if (comm_ == nullptr) return;
  static_cast<void>(nccl().abort(comm_));
  comm_ = nullptr;
  changed_.NotifyAll();
}

}  // namespace weft
