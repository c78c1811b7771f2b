#include "common/program/expert_runs.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace weft {
namespace {

constexpr int64_t kMostPaddingBytes = 512;

}  // namespace

std::vector<int32_t> UsedExperts(const TensorLayout& layout, absl::Span<const uint8_t> bytes) {
  std::vector<int32_t> used;
  const Extents& ne = layout.ne;
  const auto& nb = layout.nb;
  for (int64_t i3 = 0; i3 < ne[3]; ++i3) {
    for (int64_t i2 = 0; i2 < ne[2]; ++i2) {
      for (int64_t i1 = 0; i1 < ne[1]; ++i1) {
        for (int64_t i0 = 0; i0 < ne[0]; ++i0) {
          int32_t id = 0;
          std::memcpy(&id, bytes.data() + i0 * nb[0] + i1 * nb[1] + i2 * nb[2] + i3 * nb[3],
                      sizeof(id));
          if (id >= 0) used.push_back(id);
        }
      }
    }
  }
  std::sort(used.begin(), used.end());
  used.erase(std::unique(used.begin(), used.end()), used.end());
  return used;
}

absl::StatusOr<std::vector<ExpertRun>> ExpertRuns(absl::Span<const int32_t> used, int64_t experts,
                                                  int64_t stride) {
  if (!used.empty() && used.back() >= experts) {
    return absl::InvalidArgumentError(
        absl::StrCat("expert id ", used.back(), ", but there are ", experts, " experts"));
  }
  std::vector<ExpertRun> runs;
  for (size_t first = 0, next = 0; first < used.size(); first = next) {
    next = first + 1;
    while (next < used.size() && used[next] == used[next - 1] + 1) ++next;
    const auto count = static_cast<int64_t>(next - first);
    const bool last = used[next - 1] == experts - 1;
    const int64_t padding = last ? 0 : std::min(stride, kMostPaddingBytes);
    runs.push_back({used[first] * stride, count * stride + padding});
  }
  return runs;
}

}  // namespace weft
