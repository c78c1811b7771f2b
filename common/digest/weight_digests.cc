#include "common/digest/weight_digests.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/checked_math.h"
#include "common/base/escaped_text.h"
#include "common/base/mapped_file.h"
#include "common/base/status_macros.h"
#include "common/digest/file_identity.h"

namespace weft {
namespace {

std::string NameOf(const GgufTensor& tensor) {
  return EscapedText(tensor.name, static_cast<size_t>(kGgufMaxTensorNameLength));
}

// The tensors that lie in one part of a model, in the order of the file's table.
std::vector<const GgufTensor*> TensorsOfPart(const GgufFile& file, int file_index) {
  std::vector<const GgufTensor*> tensors;
  for (const GgufTensor& tensor : file.tensors()) {
    if (tensor.file_index == file_index) tensors.push_back(&tensor);
  }
  return tensors;
}

absl::Status Cancelled() { return absl::CancelledError("digesting was cancelled"); }

// Digests of one tensor after the other, with progress over all of them.
class TensorDigester {
 public:
  TensorDigester(const GgufFile& file, const std::vector<const GgufTensor*>& tensors,
                 const DigestProgress& progress)
      : file_(file), progress_(progress) {
    for (const GgufTensor* tensor : tensors) total_ += tensor->bytes;
  }

  absl::StatusOr<TensorDigests> Digest(const GgufTensor& tensor) {
    TensorDigests digests{NameOf(tensor), tensor.file_offset, tensor.bytes, {}};
    const absl::Span<const uint8_t> bytes = file_.TensorBytes(tensor);
    for (size_t at = 0; at < bytes.size(); at += kDigestChunkBytes) {
      const absl::Span<const uint8_t> chunk = bytes.subspan(at, kDigestChunkBytes);
      digests.chunks.push_back(Sha256::Of(chunk));
      done_ += static_cast<int64_t>(chunk.size());
      if (progress_ && !progress_(done_, total_)) return Cancelled();
    }
    return digests;
  }

 private:
  const GgufFile& file_;
  const DigestProgress& progress_;
  int64_t done_ = 0;
  int64_t total_ = 0;
};

absl::StatusOr<Sha256Digest> HeaderDigest(const GgufFile& file, int file_index) {
  ASSIGN_OR_RETURN(const FileIdentity identity, IdentifyGguf(file, file_index));
  return identity.header;
}

absl::Status FileError(const std::string& path, absl::string_view what) {
  return absl::ErrnoToStatus(errno, absl::StrCat(path, ": cannot ", what));
}

absl::Status WriteAll(int descriptor, const std::string& path, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return FileError(path, "write");
    text.remove_prefix(static_cast<size_t>(written));
  }
  return fsync(descriptor) == 0 ? absl::OkStatus() : FileError(path, "write");
}

}  // namespace

absl::StatusOr<WeightDigests> ComputeWeightDigests(const GgufFile& file, int file_index,
                                                   const DigestProgress& progress) {
  WeightDigests digests;
  digests.size = static_cast<int64_t>(file.file(file_index).bytes().size());
  ASSIGN_OR_RETURN(digests.header, HeaderDigest(file, file_index));
  const std::vector<const GgufTensor*> tensors = TensorsOfPart(file, file_index);
  TensorDigester digester(file, tensors, progress);
  for (const GgufTensor* tensor : tensors) {
    ASSIGN_OR_RETURN(TensorDigests of_tensor, digester.Digest(*tensor));
    digests.tensors.push_back(std::move(of_tensor));
  }
  return digests;
}

absl::Status CheckDigestsFit(const WeightDigests& digests, const GgufFile& file, int file_index) {
  const std::string& path = file.file(file_index).path();
  const auto differs = [&](const absl::AlphaNum& what) {
    return absl::FailedPreconditionError(absl::StrCat(
        path, ": its digests are those of another file: ", what, "; run 'weft digest' again"));
  };
  const auto size = static_cast<int64_t>(file.file(file_index).bytes().size());
  if (digests.size != size) {
    return differs(absl::StrCat("of ", digests.size, " bytes, this one has ", size));
  }
  ASSIGN_OR_RETURN(const Sha256Digest header, HeaderDigest(file, file_index));
  if (digests.header != header) return differs("the header differs");
  const std::vector<const GgufTensor*> tensors = TensorsOfPart(file, file_index);
  if (digests.tensors.size() != tensors.size()) {
    return differs(
        absl::StrCat("with ", digests.tensors.size(), " tensors, this one has ", tensors.size()));
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    const TensorDigests& known = digests.tensors[i];
    const bool same = known.offset == tensors[i]->file_offset && known.bytes == tensors[i]->bytes &&
                      known.name == NameOf(*tensors[i]);
    if (!same) return differs(absl::StrCat("tensor ", i, " is '", NameOf(*tensors[i]), "' here"));
  }
  return absl::OkStatus();
}

absl::Status CheckWeightDigests(const WeightDigests& digests, const GgufFile& file, int file_index,
                                const DigestProgress& progress) {
  RETURN_IF_ERROR(CheckDigestsFit(digests, file, file_index));
  const std::vector<const GgufTensor*> tensors = TensorsOfPart(file, file_index);
  TensorDigester digester(file, tensors, progress);
  for (size_t i = 0; i < tensors.size(); ++i) {
    ASSIGN_OR_RETURN(const TensorDigests found, digester.Digest(*tensors[i]));
    const std::vector<Sha256Digest>& known = digests.tensors[i].chunks;
    for (size_t chunk = 0; chunk < found.chunks.size(); ++chunk) {
      if (chunk < known.size() && found.chunks[chunk] == known[chunk]) continue;
      const int64_t at = static_cast<int64_t>(chunk) * kDigestChunkBytes;
      return absl::DataLossError(absl::StrCat(file.file(file_index).path(), ": tensor '",
                                              found.name, "' differs from its digests in bytes ",
                                              at, " to ",
                                              std::min(at + kDigestChunkBytes, found.bytes)));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<WeightDigests> ReadWeightDigests(const std::string& model_path) {
  const std::string path = absl::StrCat(model_path, AbslView(kDigestSuffix));
  ASSIGN_OR_RETURN(const std::unique_ptr<MappedFile> file, MappedFile::Open(path));
  const absl::Span<const uint8_t> bytes = file->bytes();
  return ParseWeightDigests({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path);
}

absl::Status WriteWeightDigests(const WeightDigests& digests, const std::string& model_path) {
  const std::string path = absl::StrCat(model_path, AbslView(kDigestSuffix));
  // The name is unique among running processes; what a killed one left behind is taken over.
  const std::string temporary = absl::StrCat(path, ".", getpid(), ".tmp");
  const int descriptor = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor < 0) return FileError(temporary, "create");
  absl::Status status = WriteAll(descriptor, temporary, WeightDigestsText(digests));
  if (close(descriptor) != 0 && status.ok()) status = FileError(path, "write");
  if (status.ok() && rename(temporary.c_str(), path.c_str()) != 0) {
    status = FileError(path, "rename to");
  }
  if (!status.ok()) unlink(temporary.c_str());
  return status;
}

}  // namespace weft
