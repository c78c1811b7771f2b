// What a $ref points to.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "coordinator/json/checked_json.h"

namespace weft {

// The value in `document` that "#" or "#/a/0/b" names (RFC 6901, with %XX). Outlived by it. Errors:
// INVALID_ARGUMENT naming the reference: it leads elsewhere or nowhere.
absl::StatusOr<const Json*> ResolvePointer(const Json& document, std::string_view reference);

// Whether a value has that type of JSON Schema; an integer is a number, too.
bool HasType(const Json& value, std::string_view type);

}  // namespace weft
