// allOf: several schemas of objects as one.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "coordinator/json/checked_json.h"

namespace weft {

// `schema` with the parts of its allOf merged into it, references followed; `merges_left` counts
// down over all calls of one document. Parts may have type, properties, required,
// additionalProperties, allOf, $ref and annotations. Errors: INVALID_ARGUMENT starting with `path`.
absl::StatusOr<Json> MergeAllOf(const Json& document, const Json& schema, const std::string& path,
                                int64_t& merges_left);

// Whether a keyword says nothing about what is valid.
bool IsAnnotation(const std::string& keyword);

}  // namespace weft
