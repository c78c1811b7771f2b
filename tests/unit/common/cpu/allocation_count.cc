#include "tests/unit/common/cpu/allocation_count.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace weft {
namespace {

std::atomic<int64_t> count{0};

}  // namespace

int64_t AllocationCount() { return count.load(); }

}  // namespace weft

void* operator new(size_t bytes) {
  weft::count.fetch_add(1);
  void* data = std::malloc(bytes == 0 ? 1 : bytes);
  if (data == nullptr) std::abort();
  return data;
}
void operator delete(void* data) noexcept { std::free(data); }
void operator delete(void* data, size_t) noexcept { std::free(data); }
