// One compiled regular expression over UTF-8, by PCRE2. Nothing else in the tree uses that library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace weft {

enum class RegularExpressionMode {
  kFast,        // compiled to machine code where the library can
  kCountSteps,  // interpreted; SplitAll() adds to `steps` for every element that is tried
  kSearch,      // what people type: PCRE2's syntax as it is, for Contains() alone
};

class RegularExpression {
 public:
  // Character properties are Unicode's (tables of PCRE2 10.42: version 14); \s and \S are
  // White_Space and its complement (in mode kSearch PCRE2's own).
  // Errors: INTERNAL, in mode kSearch INVALID_ARGUMENT, with the library's message.
  static absl::StatusOr<std::unique_ptr<RegularExpression>> Create(std::string_view expression,
                                                                   RegularExpressionMode mode);
  RegularExpression(const RegularExpression&) = delete;
  RegularExpression& operator=(const RegularExpression&) = delete;
  ~RegularExpression();

  // Splits every piece at the matches: a piece becomes the matches in it and the text between them,
  // without empty ones. To the expression a piece is all there is: neither look-behind nor
  // look-ahead sees beyond. Pieces must be valid UTF-8. `steps` may be null in mode kFast. Can be
  // called from several threads.
  // Errors: RESOURCE_EXHAUSTED if the library runs out of memory.
  absl::StatusOr<std::vector<std::string_view>> SplitAll(
      const std::vector<std::string_view>& pieces, int64_t* steps) const;

  // Whether the expression matches anywhere in `text`. Gives up on expressions that try too much,
  // so that none takes longer than milliseconds. Can be called from several threads. Errors:
  // RESOURCE_EXHAUSTED if it gave up or memory ran out; INVALID_ARGUMENT if `text` is not UTF-8.
  absl::StatusOr<bool> Contains(std::string_view text) const;

 private:
  struct State;
  explicit RegularExpression(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace weft
