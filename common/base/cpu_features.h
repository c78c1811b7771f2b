// Which instruction sets this processor and operating system offer to our kernels.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"

namespace weft {

// From least to most preferred on its architecture.
enum class InstructionSet { kScalar, kAvx2, kAvx512, kNeon };

// "scalar", "avx2", "avx512", "neon".
std::string_view InstructionSetName(InstructionSet isa);

// True if code of that set can run here. kAvx2 means AVX2, FMA, F16C and BMI2; kAvx512 adds F, BW,
// VL, DQ and VNNI.
bool IsSupported(InstructionSet isa);

// The best set that can run here.
InstructionSet BestInstructionSet();

// Parses a name. Errors: INVALID_ARGUMENT naming the accepted words; FAILED_PRECONDITION if it
// cannot run here.
absl::StatusOr<InstructionSet> ParseInstructionSet(std::string_view name);

}  // namespace weft
