#include "worker/collectives/nccl_api.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/status_macros.h"

namespace weft {
namespace {

class SymbolTable {
 public:
  SymbolTable(void* library, const std::string& file) : library_(library), file_(file) {}

  template <typename T>
  absl::Status Find(const char* name, T*& function) const {
    function = reinterpret_cast<T*>(dlsym(library_, name));
    if (function != nullptr) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat(file_, " has no ", name, ": NCCL 2.14 or later is needed"));
  }

 private:
  void* const library_;
  const std::string& file_;
};

absl::StatusOr<NcclFunctions> FindFunctions(const SymbolTable& symbols) {
  NcclFunctions f;
  RETURN_IF_ERROR(symbols.Find("ncclGetVersion", f.get_version));
  RETURN_IF_ERROR(symbols.Find("ncclGetUniqueId", f.get_unique_id));
  RETURN_IF_ERROR(symbols.Find("ncclCommInitRankConfig", f.init_rank));
  RETURN_IF_ERROR(symbols.Find("ncclCommDestroy", f.destroy));
  RETURN_IF_ERROR(symbols.Find("ncclCommAbort", f.abort));
  RETURN_IF_ERROR(symbols.Find("ncclCommGetAsyncError", f.async_error));
  RETURN_IF_ERROR(symbols.Find("ncclGetErrorString", f.error_string));
  RETURN_IF_ERROR(symbols.Find("ncclAllReduce", f.all_reduce));
  RETURN_IF_ERROR(symbols.Find("ncclAllGather", f.all_gather));
  RETURN_IF_ERROR(symbols.Find("ncclReduceScatter", f.reduce_scatter));
  RETURN_IF_ERROR(symbols.Find("ncclBroadcast", f.broadcast));
  RETURN_IF_ERROR(symbols.Find("ncclReduce", f.reduce));
  RETURN_IF_ERROR(symbols.Find("ncclGroupStart", f.group_start));
  RETURN_IF_ERROR(symbols.Find("ncclGroupEnd", f.group_end));
  return f;
}

std::string VersionText(int version) {
  return absl::StrCat(version / 10000, ".", version / 100 % 100, ".", version % 100);
}

}  // namespace

absl::StatusOr<std::shared_ptr<const NcclApi>> NcclApi::Load(const std::string& file) {
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = dlerror();
    return absl::NotFoundError(absl::StrCat("cannot load NCCL: ", reason == nullptr ? file : reason,
                                            "; ranks on GPUs reduce without it, more slowly"));
  }
  ASSIGN_OR_RETURN(const NcclFunctions functions, FindFunctions(SymbolTable(library, file)));
  int version = 0;
  const NcclResultCode result = functions.get_version(&version);
  if (result != static_cast<NcclResultCode>(NcclResult::kSuccess) || version < kLeastVersion) {
    return absl::FailedPreconditionError(absl::StrCat(file, " is NCCL ", VersionText(version), "; ",
                                                      VersionText(kLeastVersion), " is needed"));
  }
  // Not make_shared: the constructor is private.
  return std::shared_ptr<const NcclApi>(new NcclApi(functions, version));
}

std::string NcclApi::description() const { return absl::StrCat("NCCL ", VersionText(version_)); }

absl::Status NcclApi::StatusOf(NcclResultCode result, std::string_view call) const {
  const auto code = static_cast<NcclResult>(result);
  if (code == NcclResult::kSuccess) return absl::OkStatus();
  const char* words = functions_.error_string(result);
  const std::string text = absl::StrCat(AbslView(call), ": ", words == nullptr ? "error" : words,
                                        " (", result, " of ", description(), ")");
  const bool elsewhere = code == NcclResult::kRemoteError || code == NcclResult::kSystemError;
  return elsewhere ? absl::UnavailableError(text) : absl::InternalError(text);
}

}  // namespace weft
