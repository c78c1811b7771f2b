#include "coordinator/meta/restated_view.h"

#include <algorithm>

#include "absl/container/inlined_vector.h"
#include "common/tensor/dtype.h"

namespace weft::split {
namespace {

constexpr int kDimensions = 4;

// Dimensions, next to each other, that both layouts go through with one step.
struct Run {
  int64_t count = 1;
  int64_t from = 0;  // bytes per step
  int64_t to = 0;
};
using Runs = absl::InlinedVector<Run, kDimensions>;
using Steps = absl::InlinedVector<int64_t, kDimensions>;  // along each run

// Extents in steps: blocks along the first dimension.
int64_t Count(const Extents& ne, int d, int64_t block) { return d == 0 ? ne[0] / block : ne[d]; }

// The longest steps first; empty where one has no length.
Runs RunsOf(const TensorLayout& from, const TensorLayout& to, int64_t block) {
  Runs runs;
  for (int d = 0; d < kDimensions; ++d) {
    const int64_t count = Count(from.ne, d, block);
    if (count == 1) continue;
    if (from.nb[d] <= 0) return {};
    const bool on = !runs.empty() && from.nb[d] == runs.back().count * runs.back().from &&
                    to.nb[d] == runs.back().count * runs.back().to;
    if (on) {
      runs.back().count *= count;
    } else {
      runs.push_back({count, from.nb[d], to.nb[d]});
    }
  }
  std::sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) { return a.from > b.from; });
  return runs;
}

// So many bytes of `from` as steps; nothing if they end between elements.
std::optional<Steps> StepsOf(int64_t bytes, const Runs& runs) {
  Steps steps;
  for (const Run& run : runs) {
    steps.push_back(bytes / run.from);
    bytes %= run.from;
  }
  if (bytes != 0) return std::nullopt;
  return steps;
}

int64_t BytesOf(const Steps& steps, const Runs& runs) {
  int64_t bytes = 0;
  for (size_t r = 0; r < runs.size(); ++r) bytes += steps[r] * runs[r].to;
  return bytes;
}

}  // namespace

std::optional<ViewAttributes> RestatedView(const ViewAttributes& view, const TensorLayout& from,
                                           const TensorLayout& to) {
  const int64_t block = GetDTypeInfo(from.dtype).block_elements;
  const Runs runs = RunsOf(from, to, block);
  std::optional<Steps> last = StepsOf(view.offset, runs);
  if (!last) return std::nullopt;
  ViewAttributes made = view;
  made.offset = BytesOf(*last, runs);
  for (int d = 0; d < kDimensions; ++d) {
    const int64_t count = Count(view.ne, d, block);
    if (count <= 1) continue;  // nobody steps there
    const std::optional<Steps> step = StepsOf(view.nb[d], runs);
    if (!step) return std::nullopt;
    made.nb[d] = BytesOf(*step, runs);
    for (size_t r = 0; r < runs.size(); ++r) (*last)[r] += (count - 1) * (*step)[r];
  }
  // A step that carries over to the next run goes elsewhere in `to`.
  for (size_t r = 0; r < runs.size(); ++r) {
    if ((*last)[r] >= runs[r].count) return std::nullopt;
  }
  return made;
}

}  // namespace weft::split
