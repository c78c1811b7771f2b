// JSON whose objects keep their order, from texts that a model or a client wrote.
#pragma once

#include <optional>
#include <string_view>

#include "nlohmann/json.hpp"

namespace weft {

using OrderedJson = nlohmann::ordered_json;

// Objects and arrays inside each other that ParseOrderedJson() takes.
inline constexpr int kMaxJsonDepth = 64;
// Bytes that it takes.
inline constexpr size_t kMaxJsonBytes = size_t{1} << 20;

// The value that `text` is as a whole, white space around it aside; nothing if it is no JSON or
// passes a limit.
std::optional<OrderedJson> ParseOrderedJson(std::string_view text);

// JSON in one line as Python writes it: ", " and ": " between things, characters beyond ASCII as
// they are.
std::string JsonLine(const OrderedJson& json);

}  // namespace weft
