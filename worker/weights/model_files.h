// Model files that this worker can see, mapped once for all sessions.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "common/base/mapped_file.h"
#include "common/base/mutex.h"
#include "common/digest/sha256.h"
#include "rpc_backend/protocol/manifest_codec.h"

namespace weft {

// Thread-safe.
class ModelFiles {
 public:
  // The file under that path, if it has that size and identity. A mapping lives while anybody holds
  // it. Errors: NOT_FOUND; FAILED_PRECONDITION for another file of that name; others of MappedFile.
  absl::StatusOr<std::shared_ptr<const MappedFile>> Open(const ModelFileRecord& wanted);

 private:
  Mutex mutex_;
  // By identity and path.
  std::map<std::pair<Sha256Digest, std::string>, std::weak_ptr<const MappedFile>> files_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft
