// Assertions about our own invariants. Nothing that arrived by wire, file or HTTP may reach one:
// that is a Status.
#pragma once

namespace weft {

// Prints the place and the condition to stderr and aborts.
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition);

}  // namespace weft

#define WEFT_CHECK(condition)                          \
  (static_cast<bool>(condition) ? static_cast<void>(0) \
                                : ::weft::CheckFailed(__FILE__, __LINE__, #condition))

#ifdef NDEBUG
#define WEFT_DCHECK(condition) static_cast<void>(sizeof(condition))
#else
#define WEFT_DCHECK(condition) WEFT_CHECK(condition)
#endif
