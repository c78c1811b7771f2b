#include "coordinator/engine/runner_options.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace weft {
namespace {

absl::Status CheckCacheType(const char* flag, DType dtype, int64_t head) {
  const bool known = dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kQ8_0;
  if (!known) {
    return absl::InvalidArgumentError(absl::StrCat(flag, ": KV pages are F32, F16 or Q8_0"));
  }
  const int64_t block = GetDTypeInfo(dtype).block_elements;
  if (head % block == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      flag, ": heads of ", head, " elements are not a multiple of the type's block of ", block,
      "; use F16 or F32"));
}

}  // namespace

absl::Status CheckRunnerOptions(const Model& model, const RunnerOptions& options) {
  const Hyperparameters& h = model.hyperparameters();
  if (options.context < 1 || options.context > kMaxContext) {
    return absl::InvalidArgumentError(
        absl::StrCat("-c: context of ", options.context, " tokens, want 1 to ", kMaxContext));
  }
  if (options.cache_tokens < 0 || options.cache_tokens > kMaxCacheTokens) {
    return absl::InvalidArgumentError(absl::StrCat("a KV cache of ", options.cache_tokens,
                                                   " tokens, want at most ", kMaxCacheTokens));
  }
  if (options.ubatch < 1 || options.ubatch > 65536) {
    return absl::InvalidArgumentError(
        absl::StrCat("-ub: ubatch of ", options.ubatch, " tokens, want 1 to 65536"));
  }
  if (options.sequences < 1 || options.sequences > 4096) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.sequences, " sequences, want 1 to 4096"));
  }
  if (options.candidates < 0 || options.candidates > h.n_vocab || options.changed < 0 ||
      options.changed > h.n_vocab) {
    return absl::InvalidArgumentError(absl::StrCat(options.candidates, " candidates and ",
                                                   options.changed,
                                                   " changed ids of a vocabulary of ", h.n_vocab));
  }
  RETURN_IF_ERROR(CheckCacheType("-ctk", options.key_type, h.key_head));
  return CheckCacheType("-ctv", options.value_type, h.value_head);
}

}  // namespace weft
