#include "worker/weights/model_files.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/digest/file_identity.h"

namespace weft {
namespace {

// Those of the file beside the model, if they are of that model.
WeightDigests DigestsBeside(const std::string& path, const FileIdentity& identity) {
  absl::StatusOr<WeightDigests> digests = ReadWeightDigests(path);
  const bool fit =
      digests.ok() && digests->size == identity.size && digests->header == identity.header;
  return fit ? *std::move(digests) : WeightDigests();
}

}  // namespace

absl::Span<const Sha256Digest> ModelFiles::File::DigestsOf(int64_t offset, int64_t bytes) const {
  for (const TensorDigests& tensor : digests.tensors) {
    if (tensor.offset == offset && tensor.bytes == bytes) return tensor.chunks;
  }
  return {};
}

absl::StatusOr<std::shared_ptr<const ModelFiles::File>> ModelFiles::Open(
    const ModelFileRecord& wanted) {
  if (!enabled_) {
    return absl::FailedPreconditionError("this worker uses no files of its machine (--no-files)");
  }
  const auto key = std::make_pair(wanted.identity, wanted.path);
  MutexLock lock(mutex_);
  const auto found = files_.find(key);
  if (found != files_.end()) {
    if (std::shared_ptr<const File> file = found->second.lock()) return file;
    files_.erase(found);
  }
  auto file = std::make_shared<File>();
  ASSIGN_OR_RETURN(file->mapped, MappedFile::Open(wanted.path));
  const auto size = static_cast<int64_t>(file->mapped->bytes().size());
  if (size != wanted.size) {
    return absl::FailedPreconditionError(absl::StrCat(
        wanted.path, " has ", size, " bytes here and ", wanted.size, " at the coordinator"));
  }
  ASSIGN_OR_RETURN(const FileIdentity identity,
                   IdentifyBytes(file->mapped->bytes(), wanted.data_offset));
  if (identity.digest != wanted.identity) {
    return absl::FailedPreconditionError(
        absl::StrCat(wanted.path, " has other content here than at the coordinator"));
  }
  file->digests = DigestsBeside(wanted.path, identity);
  // An earlier file may have had the same address.
  const auto of_file = [&](const auto& entry) { return std::get<0>(entry) == file.get(); };
  std::erase_if(checked_, of_file);
  files_.emplace(key, file);
  return file;
}

bool ModelFiles::IsChecked(const File& file, int64_t offset, int64_t bytes) const {
  MutexLock lock(mutex_);
  return checked_.contains({&file, offset, bytes});
}

void ModelFiles::MarkChecked(const File& file, int64_t offset, int64_t bytes) {
  MutexLock lock(mutex_);
  checked_.insert({&file, offset, bytes});
}

}  // namespace weft
