// The functions of NCCL that collectives of CUDA ranks need, found at run time: Debian has no
// package of it, and nothing of weft needs it to build or to start. Types and numbers are those of
// its binary interface since 2.14, which names communicators that do not block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace weft {

struct NcclComm;           // the library's
using NcclStream = void*;  // a cudaStream_t
using NcclResultCode = int;

enum class NcclResult : NcclResultCode {
  kSuccess = 0,
  kUnhandledCudaError = 1,
  kSystemError = 2,
  kInternalError = 3,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
  kRemoteError = 6,
  kInProgress = 7,
};

enum class NcclType : int { kHalf = 6, kFloat = 7, kBfloat16 = 9 };
enum class NcclReduction : int { kSum = 0 };

// Made by one rank, known to all of a communicator.
struct NcclUniqueId {
  char bytes[128] = {};
};

// As of 2.14; later versions take it for what it is by its size and version.
struct NcclConfig {
  size_t size = sizeof(NcclConfig);
  uint32_t magic = 0xcafebeef;
  uint32_t version = 21400;
  int blocking = 0;
};

// Counts are elements.
struct NcclFunctions {
  NcclResultCode (*get_version)(int* version) = nullptr;
  NcclResultCode (*get_unique_id)(NcclUniqueId* id) = nullptr;
  NcclResultCode (*init_rank)(NcclComm** comm, int ranks, NcclUniqueId id, int rank,
                              NcclConfig* config) = nullptr;
  NcclResultCode (*destroy)(NcclComm* comm) = nullptr;
  NcclResultCode (*abort)(NcclComm* comm) = nullptr;
  NcclResultCode (*async_error)(NcclComm* comm, NcclResultCode* result) = nullptr;
  const char* (*error_string)(NcclResultCode result) = nullptr;
  NcclResultCode (*all_reduce)(const void* from, void* to, size_t count, NcclType type,
                               NcclReduction reduction, NcclComm* comm,
                               NcclStream stream) = nullptr;
  NcclResultCode (*all_gather)(const void* from, void* to, size_t count_each, NcclType type,
                               NcclComm* comm, NcclStream stream) = nullptr;
  NcclResultCode (*reduce_scatter)(const void* from, void* to, size_t count_each, NcclType type,
                                   NcclReduction reduction, NcclComm* comm,
                                   NcclStream stream) = nullptr;
  NcclResultCode (*broadcast)(const void* from, void* to, size_t count, NcclType type, int root,
                              NcclComm* comm, NcclStream stream) = nullptr;
  NcclResultCode (*reduce)(const void* from, void* to, size_t count, NcclType type,
                           NcclReduction reduction, int root, NcclComm* comm,
                           NcclStream stream) = nullptr;
  NcclResultCode (*group_start)() = nullptr;
  NcclResultCode (*group_end)() = nullptr;
};

class NcclApi {
 public:
  static constexpr const char* kLibrary = "libnccl.so.2";
  static constexpr int kLeastVersion = 21400;

  // Looks for the file where the dynamic linker does. It stays loaded until the process ends: its
  // threads do not survive unloading. Errors: NOT_FOUND with the linker's reason;
  // FAILED_PRECONDITION naming the function that is missing, or the version that is too old.
  static absl::StatusOr<std::shared_ptr<const NcclApi>> Load(const std::string& file = kLibrary);

  const NcclFunctions& functions() const { return functions_; }
  int version() const { return version_; }  // 22809 is 2.28.9
  std::string description() const;          // "NCCL 2.28.9"

  // OK for success. Errors name `call` and give the library's words: UNAVAILABLE where another
  // rank or the network is the cause, INTERNAL else.
  absl::Status StatusOf(NcclResultCode result, std::string_view call) const;

 private:
  NcclApi(const NcclFunctions& functions, int version) : functions_(functions), version_(version) {}

  const NcclFunctions functions_;
  const int version_;
};

}  // namespace weft
