// The cases of the self-test: every op that devices execute, in every type that its kernels are
// written for.
#pragma once

#include <vector>

#include "worker/self_test/test_case.h"

namespace weft::self_test {

void AddElementCases(std::vector<TestCase>& cases);
void AddRowCases(std::vector<TestCase>& cases);
void AddMoveCases(std::vector<TestCase>& cases);
void AddProductCases(std::vector<TestCase>& cases);
void AddAttentionCases(std::vector<TestCase>& cases);
void AddRecurrentCases(std::vector<TestCase>& cases);

// All of them; without data, which takes longer to make than the graphs.
std::vector<TestCase> AllCases();

}  // namespace weft::self_test
