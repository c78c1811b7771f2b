#include "coordinator/grammar/schema_merge.h"

#include <algorithm>
#include <set>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "coordinator/grammar/schema_pointer.h"

namespace weft {
namespace {

constexpr int kMostDepth = 64;

class Merger {
 public:
  Merger(const Json& document, std::string path, int64_t& merges_left)
      : document_(document), path_(std::move(path)), merges_left_(merges_left) {}

  absl::StatusOr<Json> Merge(const Json& schema) {
    RETURN_IF_ERROR(Add(schema, 0));
    // An additionalProperties knows only the properties beside it.
    for (const auto& [closed, own] : closed_) {
      for (const auto& [name, value] : properties_.items()) {
        if (own.count(name) == 0) {
          return Error(
              absl::StrCat("additionalProperties of one part forbids '", name, "' of another"));
        }
      }
      if (merged_.contains("additionalProperties") && merged_["additionalProperties"] != closed) {
        return Error("parts differ in additionalProperties");
      }
      merged_["additionalProperties"] = closed;
    }
    if (!properties_.empty()) merged_["properties"] = properties_;
    if (!required_.empty()) merged_["required"] = required_;
    return merged_;
  }

 private:
  absl::Status Error(const std::string& what) const {
    return absl::InvalidArgumentError(absl::StrCat(path_, ": allOf: ", what));
  }

  absl::Status Add(const Json& part, int depth) {
    if (depth > kMostDepth || --merges_left_ < 0) return Error("too many parts");
    if (!part.is_object()) return Error("a part is not an object");
    for (const auto& [key, value] : part.items()) {
      if (key == "properties") {
        RETURN_IF_ERROR(AddProperties(value));
      } else if (key == "required") {
        RETURN_IF_ERROR(AddRequired(value));
      } else if (key == "additionalProperties") {
        AddClosed(part, value);
      } else if (key == "allOf") {
        if (!value.is_array()) return Error("this is not an array");
        for (const Json& inner : value) RETURN_IF_ERROR(Add(inner, depth + 1));
      } else if (key == "$ref") {
        if (!value.is_string()) return Error("$ref is not a text");
        ASSIGN_OR_RETURN(const Json* target,
                         ResolvePointer(document_, value.get_ref<const std::string&>()));
        RETURN_IF_ERROR(Add(*target, depth + 1));
      } else if (key == "type") {
        if (merged_.contains(key) && merged_[key] != value) return Error("parts differ in type");
        merged_[key] = value;
      } else if (!IsAnnotation(key) && key != "$defs" && key != "definitions") {
        return Error(absl::StrCat("the keyword '", key, "' is not supported in parts"));
      }
    }
    return absl::OkStatus();
  }

  absl::Status AddProperties(const Json& properties) {
    if (!properties.is_object()) return Error("properties is not an object");
    for (const auto& [name, value] : properties.items()) {
      if (properties_.contains(name) && properties_[name] != value) {
        return Error(absl::StrCat("parts differ in the property '", name, "'"));
      }
      if (properties_.size() > kMostProperties) return Error("too many properties");
      properties_[name] = value;
    }
    return absl::OkStatus();
  }

  absl::Status AddRequired(const Json& required) {
    if (!required.is_array()) return Error("required is not an array");
    for (const Json& name : required) {
      if (std::find(required_.begin(), required_.end(), name) != required_.end()) continue;
      if (required_.size() > kMostProperties) return Error("too many required properties");
      required_.push_back(name);
    }
    return absl::OkStatus();
  }

  void AddClosed(const Json& part, const Json& value) {
    if (value.is_boolean() && value.get<bool>()) return;  // says nothing
    std::set<std::string> own;
    if (part.contains("properties") && part["properties"].is_object()) {
      for (const auto& [name, schema] : part["properties"].items()) own.insert(name);
    }
    closed_.emplace_back(value, std::move(own));
  }

  static constexpr size_t kMostProperties = 1024;

  const Json& document_;
  const std::string path_;
  int64_t& merges_left_;
  Json merged_ = Json::object();
  Json properties_ = Json::object();
  Json required_ = Json::array();
  std::vector<std::pair<Json, std::set<std::string>>> closed_;
};

}  // namespace

bool IsAnnotation(const std::string& keyword) {
  static constexpr const char* kAnnotations[] = {
      "title",    "description", "default",   "examples", "example",         "$schema",
      "$id",      "id",          "$comment",  "$anchor",  "contentEncoding", "contentMediaType",
      "readOnly", "writeOnly",   "deprecated"};
  return absl::StartsWith(keyword, "x-") ||
         std::find(std::begin(kAnnotations), std::end(kAnnotations), keyword) !=
             std::end(kAnnotations);
}

absl::StatusOr<Json> MergeAllOf(const Json& document, const Json& schema, const std::string& path,
                                int64_t& merges_left) {
  return Merger(document, path, merges_left).Merge(schema);
}

}  // namespace weft
