// Early returns for absl::Status and absl::StatusOr (Debian's Abseil has none).
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Evaluates `expression` (a Status) once; returns it from the enclosing function unless it is OK.
#define RETURN_IF_ERROR(expression)              \
  do {                                           \
    absl::Status weft_status_ = (expression);    \
    if (!weft_status_.ok()) return weft_status_; \
  } while (false)

#define WEFT_CONCAT_INNER_(a, b) a##b
#define WEFT_CONCAT_(a, b) WEFT_CONCAT_INNER_(a, b)

// Evaluates `expression` (a StatusOr<T>) once; returns its status on failure, else moves the value
// into `target`, which may be a declaration: ASSIGN_OR_RETURN(const Shape shape, InferShape(node));
#define ASSIGN_OR_RETURN(target, ...) \
  WEFT_ASSIGN_OR_RETURN_(WEFT_CONCAT_(weft_status_or_, __LINE__), target, (__VA_ARGS__))

// NOLINTBEGIN(bugprone-macro-parentheses): the target may be a declaration.
#define WEFT_ASSIGN_OR_RETURN_(temporary, target, expression) \
  auto temporary = expression;                                \
  if (!temporary.ok()) return std::move(temporary).status();  \
  target = *std::move(temporary)
// NOLINTEND(bugprone-macro-parentheses)
