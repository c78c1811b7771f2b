#include "rpc_backend/protocol/content_digest.h"

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/digest/sha256.h"
#include "proto/worker.pb.h"

namespace weft {
namespace {

absl::Status Compare(std::string_view content, std::string_view digest, std::string_view wanted) {
  if (digest.empty() || digest == wanted) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(AbslView(content), " was changed on its way"));
}

}  // namespace

std::string ContentDigest(std::string_view bytes) {
  Sha256 digest;
  digest.Update(bytes);
  return digest.Finish().Raw();
}

std::string ContentDigest(const proto::InstantiateRequest& request) {
  Sha256 digest;
  for (const proto::Binding& binding : request.bindings()) {
    for (const int64_t number : {static_cast<int64_t>(binding.kind()), int64_t{binding.id()},
                                 int64_t{binding.buffer()}, int64_t{binding.offset()}}) {
      digest.UpdateInt(number);
    }
  }
  return digest.Finish().Raw();
}

absl::Status CheckContent(std::string_view content, std::string_view bytes,
                          std::string_view digest) {
  return Compare(content, digest, ContentDigest(bytes));
}

absl::Status CheckContent(const proto::InstantiateRequest& request) {
  return Compare("the list of bindings", request.sha256(), ContentDigest(request));
}

}  // namespace weft
