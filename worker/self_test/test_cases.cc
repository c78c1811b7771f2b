#include "worker/self_test/test_cases.h"

namespace weft::self_test {
std::vector<TestCase> AllCases() {
  std::vector<TestCase> cases;
  for (auto* add : {AddElementCases, AddRowCases, AddMoveCases, AddProductCases, AddAttentionCases,
                    AddRecurrentCases}) {
    add(cases);
  }
  return cases;
}

}  // namespace weft::self_test
