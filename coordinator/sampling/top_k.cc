#include <algorithm>

#include "coordinator/sampling/stages.h"

namespace weft {

void KeepTopK(int32_t k, std::vector<Candidate>& candidates) {
  const size_t keep = k <= 0 ? candidates.size() : std::min<size_t>(k, candidates.size());
  std::partial_sort(candidates.begin(), candidates.begin() + static_cast<int64_t>(keep),
                    candidates.end(), Before);
  candidates.resize(keep);
}

}  // namespace weft
