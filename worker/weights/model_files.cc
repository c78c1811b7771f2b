#include "worker/weights/model_files.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/digest/file_identity.h"

namespace weft {

absl::StatusOr<std::shared_ptr<const MappedFile>> ModelFiles::Open(const ModelFileRecord& wanted) {
  const auto key = std::make_pair(wanted.identity, wanted.path);
  MutexLock lock(mutex_);
  const auto found = files_.find(key);
  if (found != files_.end()) {
    if (std::shared_ptr<const MappedFile> file = found->second.lock()) return file;
    files_.erase(found);
  }
  ASSIGN_OR_RETURN(std::unique_ptr<MappedFile> mapped, MappedFile::Open(wanted.path));
  if (static_cast<int64_t>(mapped->bytes().size()) != wanted.size) {
    return absl::FailedPreconditionError(absl::StrCat(wanted.path, " has ", mapped->bytes().size(),
                                                      " bytes here and ", wanted.size,
                                                      " at the coordinator"));
  }
  ASSIGN_OR_RETURN(const FileIdentity identity, IdentifyGguf(*mapped));
  if (identity.digest != wanted.identity) {
    return absl::FailedPreconditionError(
        absl::StrCat(wanted.path, " has other content here than at the coordinator"));
  }
  std::shared_ptr<const MappedFile> file = std::move(mapped);
  files_.emplace(key, file);
  return file;
}

}  // namespace weft
