// The kernel checks as a program of their own, cross-compiled and run under an emulator where the
// build is not for AArch64. Prints what fails; exit status 1 then. WEFT_TEST_SEED repeats a run.
#include <cstdio>
#include <string>
#include <vector>

#include "common/cpu/kernels/kernel_table.h"
#include "tests/support/test_seed.h"
#include "tests/unit/common/cpu/kernels/kernel_checks.h"

namespace weft::cpu {

namespace scalar {
const KernelTable* Table();
}
namespace neon {
const KernelTable* Table();
}
namespace neon_dotprod {
const KernelTable* Table();
}

namespace {

int Report(const char* name, const std::string& wrong) {
  std::printf("%s: %s\n", name, wrong.empty() ? "ok" : wrong.c_str());
  return wrong.empty() ? 0 : 1;
}

int CheckTable(const char* title, const KernelTable& table, uint64_t seed) {
  std::printf("%s\n", title);
  int failures = 0;
  std::vector<KernelCheck> checks = RowChecks();
  for (const KernelCheck& check : VectorChecks()) checks.push_back(check);
  for (const KernelCheck& check : checks) failures += Report(check.name, check.run(table, seed));
  failures += Report("SameBits", CheckSameBits(*scalar::Table(), table, seed));
  return failures;
}

}  // namespace
}  // namespace weft::cpu

int main() {
  const uint64_t seed = weft::TestSeed(20261129);
  const int failures =
      weft::cpu::CheckTable("neon", *weft::cpu::neon::Table(), seed) +
      weft::cpu::CheckTable("neon with dot product", *weft::cpu::neon_dotprod::Table(), seed);
  return failures == 0 ? 0 : 1;
}
