// The table behind message_check.h: bounds by field.
#pragma once

#include <cstdint>
#include <string_view>

#include "rpc_backend/protocol/limits.h"

namespace weft {

// A number, or a member of WireLimits.
class Bound {
 public:
  // Implicit, so that the table reads like one.
  constexpr Bound(int value) : value_(value) {}  // of its own: 0 could be a pointer
  constexpr Bound(int64_t value) : value_(value) {}
  constexpr Bound(int64_t WireLimits::*member) : member_(member) {}
  constexpr Bound(int64_t ProgramLimits::*member) : program_member_(member) {}

  constexpr int64_t Of(const WireLimits& limits) const {
    if (member_ != nullptr) return limits.*member_;
    return program_member_ != nullptr ? limits.program.*program_member_ : value_;
  }

 private:
  int64_t value_ = 0;
  int64_t WireLimits::*member_ = nullptr;
  int64_t ProgramLimits::*program_member_ = nullptr;
};

// Least and most: of an integer its value, of text and bytes the length.
struct ValueRule {
  std::string_view message;
  std::string_view field;
  Bound least;
  Bound most;
};
struct ListRule {
  std::string_view message;
  std::string_view field;
  Bound most;
};

// Null without a row.
const ValueRule* FindValueRule(std::string_view message, std::string_view field);
const ListRule* FindListRule(std::string_view message, std::string_view field);

}  // namespace weft
