// A library with the functions of NCCL that weft uses, for ranks that are threads of one process
// and memory of the host. What a rank asks for waits until all ranks have asked; the last one does
// it. Streams are ignored. fake_nccl_script makes a function return something else.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/mutex.h"

namespace {

constexpr int kSuccess = 0, kInvalidArgument = 4, kRemoteError = 6, kInProgress = 7;
constexpr int kFloat = 7, kSum = 0;

struct UniqueId {
  char bytes[128];
};

struct Config {
  size_t size;
  uint32_t magic;
  uint32_t version;
  int blocking;
};

enum class Kind { kAllReduce, kAllGather, kReduceScatter, kBroadcast, kReduce };

struct Request {
  Kind kind = Kind::kAllReduce;
  const float* from = nullptr;
  float* to = nullptr;
  size_t count = 0;
  int root = 0;
};

struct Clique {
  int ranks = 0;
  std::vector<std::vector<Request>> asked;  // by rank
  size_t done = 0;
  std::vector<bool> joined;
  bool aborted = false;
};

weft::Mutex mutex;
std::map<std::string, std::shared_ptr<Clique>> cliques;  // by id
std::map<std::string, int> script;
int last_id = 0;
int aborts = 0;
int destroyed = 0;

int Scripted(const char* function) {
  const auto found = script.find(function);
  return found == script.end() ? kSuccess : found->second;
}

std::vector<float> Sum(const Clique& clique, size_t number, size_t words) {
  std::vector<float> sum(words);
  for (const std::vector<Request>& asked : clique.asked) {
    for (size_t i = 0; i < words; ++i) sum[i] += asked[number].from[i];
  }
  return sum;
}

void Do(const Clique& clique, size_t number) {
  const Request& first = clique.asked[0][number];
  const auto ranks = static_cast<size_t>(clique.ranks);
  const bool scattered = first.kind == Kind::kReduceScatter;
  const bool sums = scattered || first.kind == Kind::kAllReduce || first.kind == Kind::kReduce;
  const size_t words = first.count * (scattered ? ranks : 1);
  std::vector<float> values;
  if (sums) {
    values = Sum(clique, number, words);
  } else if (first.kind == Kind::kAllGather) {
    for (const std::vector<Request>& asked : clique.asked) {
      values.insert(values.end(), asked[number].from, asked[number].from + first.count);
    }
  } else {
    const float* from = clique.asked[static_cast<size_t>(first.root)][number].from;
    values.assign(from, from + first.count);
  }
  for (size_t rank = 0; rank < ranks; ++rank) {
    const Request& request = clique.asked[rank][number];
    if (first.kind == Kind::kReduce && static_cast<int>(rank) != first.root) continue;
    const float* part = values.data() + (scattered ? rank * first.count : 0);
    std::copy_n(part, scattered ? first.count : values.size(), request.to);
  }
}

}  // namespace

struct ncclComm {  // NOLINT(readability-identifier-naming): the library's name
  std::shared_ptr<Clique> clique;
  size_t rank = 0;
};

namespace {

int Ask(ncclComm* comm, const char* function, int type, Request request) {
  weft::MutexLock lock(mutex);
  const int scripted = Scripted(function);
  if (scripted != kSuccess && scripted != kInProgress) return scripted;
  if (type != kFloat) return kInvalidArgument;
  Clique& clique = *comm->clique;
  if (clique.aborted) return kRemoteError;
  clique.asked[comm->rank].push_back(request);
  const auto behind = [&](const auto& asked) { return asked.size() <= clique.done; };
  while (std::none_of(clique.asked.begin(), clique.asked.end(), behind)) Do(clique, clique.done++);
  return scripted;
}

}  // namespace

extern "C" {

void fake_nccl_script(const char* function, int result) {
  weft::MutexLock lock(mutex);
  script[function] = result;
}
void fake_nccl_reset() {
  weft::MutexLock lock(mutex);
  script.clear();
}
int fake_nccl_aborts() {
  weft::MutexLock lock(mutex);
  return aborts;
}
int fake_nccl_destroyed() {
  weft::MutexLock lock(mutex);
  return destroyed;
}

int ncclGetVersion(int* version) {
  *version = FAKE_NCCL_VERSION;
  return kSuccess;
}

int ncclGetUniqueId(UniqueId* id) {
  weft::MutexLock lock(mutex);
  *id = {};
  const std::string text = "clique " + std::to_string(++last_id);
  std::memcpy(id->bytes, text.c_str(), text.size());
  return Scripted("ncclGetUniqueId");
}

#ifndef FAKE_NCCL_WITHOUT_CONFIG
int ncclCommInitRankConfig(ncclComm** comm, int ranks, UniqueId id, int rank, Config* config) {
  weft::MutexLock lock(mutex);
  if (config->size != sizeof(Config) || config->magic != 0xcafebeef || config->blocking != 0) {
    return kInvalidArgument;
  }
  std::shared_ptr<Clique>& clique = cliques[std::string(id.bytes, sizeof id.bytes)];
  if (clique == nullptr) {
    clique = std::make_shared<Clique>();
    clique->ranks = ranks;
    clique->asked.resize(static_cast<size_t>(ranks));
    clique->joined.resize(static_cast<size_t>(ranks));
  }
  clique->joined[static_cast<size_t>(rank)] = true;
  *comm = std::make_unique<ncclComm>(ncclComm{clique, static_cast<size_t>(rank)}).release();
  return kInProgress;
}
#endif

int ncclCommDestroy(ncclComm* comm) {
  weft::MutexLock lock(mutex);
  const std::unique_ptr<ncclComm> owned(comm);
  ++destroyed;
  return kSuccess;
}

int ncclCommAbort(ncclComm* comm) {
  weft::MutexLock lock(mutex);
  const std::unique_ptr<ncclComm> owned(comm);
  comm->clique->aborted = true;
  ++aborts;
  return kSuccess;
}

int ncclCommGetAsyncError(ncclComm* comm, int* result) {
  weft::MutexLock lock(mutex);
  const Clique& clique = *comm->clique;
  const bool all =
      std::find(clique.joined.begin(), clique.joined.end(), false) == clique.joined.end();
  *result = !all ? kInProgress : clique.aborted ? kRemoteError : Scripted("ncclCommGetAsyncError");
  return kSuccess;
}

const char* ncclGetErrorString(int result) {
  return result == kRemoteError ? "remote process exited or there was a network error" : "bad";
}

int ncclAllReduce(const void* from, void* to, size_t count, int type, int reduction, ncclComm* comm,
                  void*) {
  if (reduction != kSum) return kInvalidArgument;
  return Ask(
      comm, "ncclAllReduce", type,
      {Kind::kAllReduce, static_cast<const float*>(from), static_cast<float*>(to), count, 0});
}

int ncclAllGather(const void* from, void* to, size_t count, int type, ncclComm* comm, void*) {
  return Ask(
      comm, "ncclAllGather", type,
      {Kind::kAllGather, static_cast<const float*>(from), static_cast<float*>(to), count, 0});
}

int ncclReduceScatter(const void* from, void* to, size_t count, int type, int reduction,
                      ncclComm* comm, void*) {
  if (reduction != kSum) return kInvalidArgument;
  return Ask(
      comm, "ncclReduceScatter", type,
      {Kind::kReduceScatter, static_cast<const float*>(from), static_cast<float*>(to), count, 0});
}

int ncclBroadcast(const void* from, void* to, size_t count, int type, int root, ncclComm* comm,
                  void*) {
  return Ask(
      comm, "ncclBroadcast", type,
      {Kind::kBroadcast, static_cast<const float*>(from), static_cast<float*>(to), count, root});
}

int ncclReduce(const void* from, void* to, size_t count, int type, int reduction, int root,
               ncclComm* comm, void*) {
  if (reduction != kSum) return kInvalidArgument;
  return Ask(
      comm, "ncclReduce", type,
      {Kind::kReduce, static_cast<const float*>(from), static_cast<float*>(to), count, root});
}

int ncclGroupStart() {
  weft::MutexLock lock(mutex);
  return Scripted("ncclGroupStart");
}
int ncclGroupEnd() {
  weft::MutexLock lock(mutex);
  return Scripted("ncclGroupEnd");
}
}
