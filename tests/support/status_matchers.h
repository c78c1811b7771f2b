// GoogleTest matchers and assertions for absl::Status.
#pragma once

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft {

inline const absl::Status& AsStatus(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& AsStatus(const absl::StatusOr<T>& result) {
  return result.status();
}

// A failure with that code whose message matches `message`: EXPECT_THAT(Parse(x), StatusIs(code,
// HasSubstr("count"))).
MATCHER_P2(StatusIs, code, message, "") {
  *result_listener << AsStatus(arg).ToString();
  return AsStatus(arg).code() == code &&
         ::testing::ExplainMatchResult(message, std::string(AsStatus(arg).message()),
                                       result_listener);
}

// A failure with that code, whatever it says.
inline auto StatusIs(absl::StatusCode code) { return StatusIs(code, ::testing::_); }

MATCHER(IsOk, "is OK") {
  *result_listener << AsStatus(arg).ToString();
  return AsStatus(arg).ok();
}

}  // namespace weft

#define ASSERT_OK(expression) ASSERT_THAT((expression), ::weft::IsOk())
#define EXPECT_OK(expression) EXPECT_THAT((expression), ::weft::IsOk())

#define WEFT_ASSERT_CONCAT_INNER_(a, b) a##b
#define WEFT_ASSERT_CONCAT_(a, b) WEFT_ASSERT_CONCAT_INNER_(a, b)
// ASSERT_OK_AND_ASSIGN(const Graph graph, BuildGraph());
#define ASSERT_OK_AND_ASSIGN(target, ...) \
  WEFT_ASSERT_OK_AND_ASSIGN_(WEFT_ASSERT_CONCAT_(status_or_, __LINE__), target, (__VA_ARGS__))
// `target` is a declaration, `temporary` its helper's name: neither is an expression.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define WEFT_ASSERT_OK_AND_ASSIGN_(temporary, target, expression) \
  auto temporary = expression;                                    \
  ASSERT_TRUE(temporary.ok()) << temporary.status().ToString();   \
  target = *std::move(temporary)
// NOLINTEND(bugprone-macro-parentheses)
