// libFuzzer target: what a model may say, in any format and cut anywhere.
#include <cstddef>
#include <cstdint>

#include "tests/unit/coordinator/chat/reply_check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  weft::CheckReply({reinterpret_cast<const char*>(data), size});
  return 0;
}
