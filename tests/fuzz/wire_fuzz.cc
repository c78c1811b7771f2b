// libFuzzer targets: any bytes through one of the decoders (the build says which).
#include <cstddef>
#include <cstdint>

#include "tests/support/wire_targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const weft::WireTarget& target = weft::FindWireTarget(WEFT_WIRE_TARGET);
  target.run({reinterpret_cast<const char*>(data), size}).IgnoreError();
  return 0;
}
