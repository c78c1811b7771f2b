#include "coordinator/cli/commands/digest.h"

#include <memory>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/status_macros.h"
#include "common/digest/file_identity.h"
#include "common/digest/weight_digests.h"
#include "common/gguf/gguf_file.h"

namespace weft {
namespace {

// The digests of one part, as they lie beside it in the end.
absl::StatusOr<WeightDigests> WriteOrCheck(const GgufFile& file, int part,
                                           const DigestOptions& options) {
  const DigestProgress progress = [&](int64_t done, int64_t total) {
    if (options.progress) options.progress(done, total);
    return true;
  };
  const std::string& path = file.file(part).path();
  if (!options.check) {
    ASSIGN_OR_RETURN(WeightDigests digests, ComputeWeightDigests(file, part, progress));
    RETURN_IF_ERROR(WriteWeightDigests(digests, path));
    return digests;
  }
  absl::StatusOr<WeightDigests> digests = ReadWeightDigests(path);
  if (absl::IsNotFound(digests.status())) {
    return absl::NotFoundError(
        absl::StrCat(digests.status().message(), "; 'weft digest ", path, "' writes it"));
  }
  RETURN_IF_ERROR(digests.status());
  RETURN_IF_ERROR(CheckWeightDigests(*digests, file, part, progress));
  return digests;
}

}  // namespace

absl::StatusOr<std::string> RunDigest(const DigestOptions& options) {
  ASSIGN_OR_RETURN(const std::unique_ptr<GgufFile> file, GgufFile::Open(options.model_path));
  nlohmann::ordered_json files = nlohmann::ordered_json::array();
  std::string lines;
  for (int part = 0; part < file->file_count(); ++part) {
    ASSIGN_OR_RETURN(const WeightDigests digests, WriteOrCheck(*file, part, options));
    ASSIGN_OR_RETURN(const FileIdentity identity, IdentifyGguf(*file, part));
    const std::string& path = file->file(part).path();
    size_t chunks = 0;
    for (const TensorDigests& tensor : digests.tensors) chunks += tensor.chunks.size();
    files.push_back({{"file", path},
                     {"digests", absl::StrCat(path, AbslView(kDigestSuffix))},
                     {"size", digests.size},
                     {"identity", identity.digest.Hex()},
                     {"tensors", digests.tensors.size()},
                     {"chunks", chunks}});
    absl::StrAppend(&lines, path, AbslView(kDigestSuffix), ": ", digests.tensors.size(),
                    " tensors, ", chunks, " digests",
                    options.check ? ", all of them right\n" : "\n");
  }
  if (!options.json) return lines;
  const nlohmann::ordered_json report = {{"checked", options.check}, {"files", files}};
  return report.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace weft
