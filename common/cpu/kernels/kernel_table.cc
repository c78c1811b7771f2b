#include "common/cpu/kernels/kernel_table.h"

#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace weft {
namespace cpu {

namespace scalar {
const KernelTable* Table();
}
namespace avx2 {
const KernelTable* Table();
}
namespace avx512 {
const KernelTable* Table();
}
namespace neon {
const KernelTable* Table();
}
namespace neon_dotprod {
const KernelTable* Table();
}

const KernelTable* ScalarKernels() { return scalar::Table(); }

#if defined(__x86_64__)
const KernelTable* Avx2Kernels() { return avx2::Table(); }
const KernelTable* Avx512Kernels() { return avx512::Table(); }
const KernelTable* NeonKernels() { return nullptr; }
#elif defined(__aarch64__)
const KernelTable* Avx2Kernels() { return nullptr; }
const KernelTable* Avx512Kernels() { return nullptr; }
const KernelTable* NeonKernels() {
  return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0 ? neon_dotprod::Table() : neon::Table();
}
#else
const KernelTable* Avx2Kernels() { return nullptr; }
const KernelTable* Avx512Kernels() { return nullptr; }
const KernelTable* NeonKernels() { return nullptr; }
#endif

}  // namespace cpu
}  // namespace weft
