// libFuzzer target: hostile chat templates.
#include <cstddef>
#include <cstdint>

#include "tests/unit/coordinator/chat/jinja/template_check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  weft::CheckTemplate({reinterpret_cast<const char*>(data), size});
  return 0;
}
