// What a template may use. Templates come with model files, which may be hostile: whatever one
// does, parsing and rendering end within these limits or with an error that names the limit.
#pragma once

#include <cstdint>

namespace weft::jinja {

struct Limits {
  int64_t template_bytes = int64_t{1} << 20;
  // Statements and brackets inside each other, and operators in one chain.
  int syntax_depth = 120;
  // Expressions, statements and macro calls under way at one time.
  int run_depth = 400;
  // Lists and dicts inside each other.
  int value_depth = 100;
  // Expressions evaluated, elements visited and (at 64 a step) bytes copied.
  int64_t steps = 20'000'000;
  // All values that live at one time.
  int64_t memory_bytes = int64_t{128} << 20;
  int64_t output_bytes = int64_t{64} << 20;
  // Elements of one range(); the sandbox of Jinja has the same limit.
  int64_t range_length = 100'000;
};

}  // namespace weft::jinja
