#include "common/cpu/ops/ops.h"
#include "common/cpu/reference/evaluators.h"

namespace weft::cpu {

absl::Status RunReference(const Operands& operands, Launch&) {
  return reference::EvaluatorOf(operands.op)(operands);
}

}  // namespace weft::cpu
