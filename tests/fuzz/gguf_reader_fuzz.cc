// libFuzzer target: any bytes through the GGUF reader.
#include <cstddef>
#include <cstdint>

#include "tests/unit/common/gguf/gguf_reader_check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  weft::CheckGgufReader({data, size});
  return 0;
}
