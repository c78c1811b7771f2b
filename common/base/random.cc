#include "common/base/random.h"

#include <cmath>

namespace weft {

double Random::Normal() {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - Uniform()));
  return radius * std::cos(6.283185307179586 * Uniform());
}

}  // namespace weft
