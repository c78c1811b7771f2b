// What must hold for the reader whatever it is given; shared by the fuzz target and the test that
// runs its corpus.
#pragma once

#include <cstdint>

#include "absl/types/span.h"

namespace weft {

// Reads `bytes` and aborts the program unless: an error is one printable line that names the file;
// a success has every tensor inside the file, aligned and apart from the others; and its metadata
// survives being written and read again. Returns whether the file was read.
bool CheckGgufReader(absl::Span<const uint8_t> bytes);

}  // namespace weft
