// libFuzzer target: hostile vocabularies and texts through the tokenizer.
#include <cstddef>
#include <cstdint>

#include "tests/unit/coordinator/tokenizer/tokenizer_check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  weft::CheckTokenizer({data, size});
  return 0;
}
