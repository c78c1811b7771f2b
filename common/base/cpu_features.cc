#include "common/base/cpu_features.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <array>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"

namespace weft {
namespace {

constexpr std::array<InstructionSet, 4> kPreferred = {
    InstructionSet::kAvx512, InstructionSet::kAvx2, InstructionSet::kNeon, InstructionSet::kScalar};

#if defined(__x86_64__)
// CPUID leaf 1, ECX bit 29: conversion between half and single precision. Clang 16's builtin does
// not know its name.
bool HasF16c() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & (1u << 29)) != 0;
}
#endif

}  // namespace

std::string_view InstructionSetName(InstructionSet isa) {
  switch (isa) {
    case InstructionSet::kScalar:
      return "scalar";
    case InstructionSet::kAvx2:
      return "avx2";
    case InstructionSet::kAvx512:
      return "avx512";
    case InstructionSet::kNeon:
      return "neon";
  }
  return "unknown";
}

bool IsSupported(InstructionSet isa) {
  switch (isa) {
    case InstructionSet::kScalar:
      return true;
#if defined(__x86_64__)
    case InstructionSet::kAvx2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
             __builtin_cpu_supports("bmi2") && HasF16c();
    case InstructionSet::kAvx512:
      return IsSupported(InstructionSet::kAvx2) && __builtin_cpu_supports("avx512f") &&
             __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
             __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vnni");
    case InstructionSet::kNeon:
      return false;
#elif defined(__aarch64__)
    case InstructionSet::kNeon:
      return true;  // part of the base architecture
    case InstructionSet::kAvx2:
    case InstructionSet::kAvx512:
      return false;
#else
    default:
      return false;
#endif
  }
  return false;
}

InstructionSet BestInstructionSet() {
  for (const InstructionSet isa : kPreferred) {
    if (IsSupported(isa)) return isa;
  }
  return InstructionSet::kScalar;
}

absl::StatusOr<InstructionSet> ParseInstructionSet(std::string_view name) {
  for (const InstructionSet isa : kPreferred) {
    if (InstructionSetName(isa) != name) continue;
    if (IsSupported(isa)) return isa;
    return absl::FailedPreconditionError(
        absl::StrCat("instruction set '", AbslView(name), "' cannot run on this processor"));
  }
  return absl::InvalidArgumentError(absl::StrCat("unknown instruction set '", AbslView(name),
                                                 "'; known are scalar, avx2, avx512 and neon"));
}

}  // namespace weft
