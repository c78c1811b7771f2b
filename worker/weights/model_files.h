// Model files that this worker can see, mapped once for all sessions.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/mapped_file.h"
#include "common/base/mutex.h"
#include "common/digest/sha256.h"
#include "common/digest/weight_digests.h"
#include "rpc_backend/protocol/manifest_codec.h"

namespace weft {

// Thread-safe.
class ModelFiles {
 public:
  struct File {
    std::unique_ptr<MappedFile> mapped;
    WeightDigests digests;  // of the file beside it; without tensors if there is none that fits

    // Of the pieces of a whole tensor that lies there; empty: not known.
    absl::Span<const Sha256Digest> DigestsOf(int64_t offset, int64_t bytes) const;
  };

  // `enabled`: false for a worker that is to use no file of its machine.
  explicit ModelFiles(bool enabled = true) : enabled_(enabled) {}

  // The file under that path, if it has that size and identity. A mapping lives while anybody holds
  // it. Errors: NOT_FOUND; FAILED_PRECONDITION for another file of that name, and where files are
  // not to be used; others of MappedFile.
  absl::StatusOr<std::shared_ptr<const File>> Open(const ModelFileRecord& wanted);

  // Which bytes of an open file were found to be those of their digests: for as long as the process
  // has it mapped, nobody need look again.
  bool IsChecked(const File& file, int64_t offset, int64_t bytes) const;
  void MarkChecked(const File& file, int64_t offset, int64_t bytes);

 private:
  const bool enabled_;
  mutable Mutex mutex_;
  // By identity and path.
  std::map<std::pair<Sha256Digest, std::string>, std::weak_ptr<const File>> files_
      ABSL_GUARDED_BY(mutex_);
  std::set<std::tuple<const File*, int64_t, int64_t>> checked_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft
