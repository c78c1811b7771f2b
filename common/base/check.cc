#include "common/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace weft {

void CheckFailed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "%s:%d: invariant broken: %s\n", file, line, condition);
  std::abort();
}

}  // namespace weft
