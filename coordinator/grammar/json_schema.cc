#include "coordinator/grammar/json_schema.h"

#include <algorithm>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/status_macros.h"
#include "coordinator/grammar/json_rules.h"
#include "coordinator/grammar/schema_merge.h"
#include "coordinator/grammar/schema_pointer.h"
#include "coordinator/grammar/schema_scalars.h"
#include "coordinator/tokenizer/utf8.h"

namespace weft {
namespace {

constexpr int64_t kMostMerges = 10'000;
constexpr const char* kTypes[] = {"object",  "array",   "string", "number",
                                  "integer", "boolean", "null"};

bool IsKeyword(const std::string& key) {
  static constexpr const char* kKeywords[] = {"type",
                                              "properties",
                                              "required",
                                              "additionalProperties",
                                              "items",
                                              "prefixItems",
                                              "minItems",
                                              "maxItems",
                                              "enum",
                                              "const",
                                              "anyOf",
                                              "oneOf",
                                              "allOf",
                                              "$ref",
                                              "$defs",
                                              "definitions",
                                              "minLength",
                                              "maxLength",
                                              "pattern",
                                              "format",
                                              "minimum",
                                              "maximum",
                                              "exclusiveMinimum",
                                              "exclusiveMaximum",
                                              "nullable"};
  return std::find(std::begin(kKeywords), std::end(kKeywords), key) != std::end(kKeywords);
}

class Converter {
 public:
  Converter(const Json& document, GrammarBuilder& builder, std::vector<std::string>& ignored)
      : document_(document), builder_(builder), json_(builder), ignored_(ignored) {}

  absl::StatusOr<GrammarElement> Run() { return Convert(document_, "#", 0); }

 private:
  absl::Status CheckKeywords(const Json& schema, const std::string& path) {
    for (const auto& [key, value] : schema.items()) {
      if (IsKeyword(key) || IsAnnotation(key)) continue;
      if (key == "uniqueItems" && value == false) continue;
      return SchemaError(path, absl::StrCat("the keyword '", key, "' is not supported"));
    }
    return absl::OkStatus();
  }

  // Only keywords of `allowed`, annotations and definitions stand beside `keyword`.
  static absl::Status CheckAlone(const Json& schema, const std::string& path,
                                 absl::string_view keyword,
                                 std::initializer_list<absl::string_view> allowed) {
    for (const auto& [key, value] : schema.items()) {
      const bool fine = key == keyword || IsAnnotation(key) || key == "$defs" ||
                        key == "definitions" || key == "nullable" ||
                        std::find(allowed.begin(), allowed.end(), key) != allowed.end();
      if (!fine) {
        return SchemaError(path,
                           absl::StrCat("'", key, "' beside '", keyword, "' is not supported"));
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<GrammarElement> Convert(const Json& schema, const std::string& path, int depth) {
    if (depth > builder_.limits().nesting) {
      return SchemaError(path,
                         absl::StrCat("more than ", builder_.limits().nesting, " nested schemas"));
    }
    RETURN_IF_ERROR(builder_.status());
    if (schema.is_boolean()) return schema.get<bool>() ? json_.Value() : builder_.Class({});
    if (!schema.is_object()) return SchemaError(path, "a schema is an object, true or false");
    RETURN_IF_ERROR(CheckKeywords(schema, path));
    ASSIGN_OR_RETURN(const GrammarElement value, ConvertForm(schema, path, depth));
    if (!schema.contains("nullable") || schema["nullable"] != true) return value;
    return builder_.Choice({{value}, {json_.Null()}});
  }

  absl::StatusOr<GrammarElement> ConvertForm(const Json& schema, const std::string& path,
                                             int depth) {
    if (schema.contains("$ref")) return ConvertReference(schema, path, depth);
    if (schema.contains("const")) {
      RETURN_IF_ERROR(CheckAlone(schema, path, "const", {"type"}));
      return ConvertValues(schema, Json::array({schema["const"]}), path);
    }
    if (schema.contains("enum")) {
      RETURN_IF_ERROR(CheckAlone(schema, path, "enum", {"type"}));
      return ConvertValues(schema, schema["enum"], path);
    }
    if (schema.contains("allOf")) return ConvertAllOf(schema, path, depth);
    for (const char* keyword : {"anyOf", "oneOf"}) {
      if (schema.contains(keyword)) return ConvertAnyOf(schema, keyword, path, depth);
    }
    return ConvertTypes(schema, path, depth);
  }

  absl::StatusOr<GrammarElement> ConvertReference(const Json& schema, const std::string& path,
                                                  int depth) {
    RETURN_IF_ERROR(CheckAlone(schema, path, "$ref", {}));
    if (!schema["$ref"].is_string()) return SchemaError(path, "$ref is not a text");
    const std::string& reference = schema["$ref"].get_ref<const std::string&>();
    const auto known = references_.find(reference);
    if (known != references_.end()) return GrammarElement{true, known->second};
    const absl::StatusOr<const Json*> target = ResolvePointer(document_, reference);
    if (!target.ok()) return SchemaError(path, target.status().message());
    const int32_t rule = builder_.AddRule(reference);
    references_[reference] = rule;
    ASSIGN_OR_RETURN(const GrammarElement value, Convert(**target, reference, depth + 1));
    builder_.AddAlternative(rule, {value});
    return GrammarElement{true, rule};
  }

  absl::StatusOr<GrammarElement> ConvertValues(const Json& schema, const Json& values,
                                               const std::string& path) {
    if (!values.is_array()) return SchemaError(path, "enum is not an array");
    ASSIGN_OR_RETURN(const std::vector<std::string> types, TypesOf(schema, path));
    std::vector<GrammarSequence> ways;
    for (const Json& value : values) {
      const bool fits = types.empty() ||
                        std::any_of(types.begin(), types.end(),
                                    [&](const std::string& type) { return HasType(value, type); });
      if (fits) {
        ways.push_back(builder_.Text(value.dump(-1, ' ', false, Json::error_handler_t::replace)));
      }
      RETURN_IF_ERROR(builder_.status());
    }
    if (ways.empty()) return SchemaError(path, "no value is left");
    return builder_.Choice(std::move(ways));
  }

  absl::StatusOr<GrammarElement> ConvertAllOf(const Json& schema, const std::string& path,
                                              int depth) {
    const Json& parts = schema["allOf"];
    if (parts.is_array() && parts.size() == 1 && CheckAlone(schema, path, "allOf", {}).ok()) {
      return Convert(parts[0], absl::StrCat(path, "/allOf/0"), depth + 1);
    }
    Json outer = schema;
    outer.erase("nullable");
    ASSIGN_OR_RETURN(const Json merged, MergeAllOf(document_, outer, path, merges_left_));
    return Convert(merged, path, depth + 1);
  }

  absl::StatusOr<GrammarElement> ConvertAnyOf(const Json& schema, const char* keyword,
                                              const std::string& path, int depth) {
    RETURN_IF_ERROR(CheckAlone(schema, path, keyword, {"type"}));
    if (!schema[keyword].is_array() || schema[keyword].empty()) {
      return SchemaError(path, absl::StrCat(keyword, " is not an array of schemas"));
    }
    std::vector<GrammarSequence> ways;
    for (size_t i = 0; i < schema[keyword].size(); ++i) {
      const std::string part_path = absl::StrCat(path, "/", keyword, "/", i);
      const Json& part = schema[keyword][i];
      if (!schema.contains("type") || !part.is_object()) {
        ASSIGN_OR_RETURN(const GrammarElement way, Convert(part, part_path, depth + 1));
        ways.push_back({way});
        continue;
      }
      // The type beside it is one that each must have.
      Json typed = part;
      if (!typed.contains("type") && !typed.contains("$ref")) typed["type"] = schema["type"];
      if (!typed.contains("type") || typed["type"] != schema["type"]) {
        return SchemaError(part_path, absl::StrCat("its type is not that beside ", keyword));
      }
      ASSIGN_OR_RETURN(const GrammarElement way, Convert(typed, part_path, depth + 1));
      ways.push_back({way});
    }
    return builder_.Choice(std::move(ways));
  }

  // Those of the keyword; none without it.
  static absl::StatusOr<std::vector<std::string>> TypesOf(const Json& schema,
                                                          const std::string& path) {
    std::vector<std::string> types;
    if (!schema.contains("type")) return types;
    const Json list = schema["type"].is_array() ? schema["type"] : Json::array({schema["type"]});
    for (const Json& type : list) {
      const bool known =
          type.is_string() && std::find(std::begin(kTypes), std::end(kTypes),
                                        type.get_ref<const std::string&>()) != std::end(kTypes);
      if (!known) return SchemaError(path, "type is not one of JSON Schema");
      types.push_back(type.get<std::string>());
    }
    if (types.empty()) return SchemaError(path, "type is an empty list");
    return types;
  }

  absl::StatusOr<GrammarElement> ConvertTypes(const Json& schema, const std::string& path,
                                              int depth) {
    ASSIGN_OR_RETURN(std::vector<std::string> types, TypesOf(schema, path));
    if (types.empty()) {
      // Keywords of one type without it leave other types free; the one is what was meant.
      const auto any = [&](std::initializer_list<const char*> keywords) {
        return std::any_of(keywords.begin(), keywords.end(),
                           [&](const char* key) { return schema.contains(key); });
      };
      if (any({"properties", "required", "additionalProperties"})) types = {"object"};
      if (any({"items", "prefixItems", "minItems", "maxItems"})) types.emplace_back("array");
      if (any({"minLength", "maxLength", "pattern", "format"})) types.emplace_back("string");
      if (any({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})) {
        types.emplace_back("number");
      }
      if (types.empty()) return json_.Value();
    }
    std::vector<GrammarSequence> ways;
    for (const std::string& type : types) {
      ASSIGN_OR_RETURN(const GrammarElement way, ConvertType(type, schema, path, depth));
      ways.push_back({way});
    }
    return builder_.Choice(std::move(ways));
  }

  absl::StatusOr<GrammarElement> ConvertType(const std::string& type, const Json& schema,
                                             const std::string& path, int depth) {
    if (type == "object") return ConvertObject(schema, path, depth);
    if (type == "array") return ConvertArray(schema, path, depth);
    if (type == "string") return StringRule(schema, path, builder_, json_, ignored_);
    if (type == "integer") return IntegerRule(schema, path, json_);
    if (type == "number") return NumberRule(schema, path, builder_, json_);
    return type == "boolean" ? json_.Boolean() : json_.Null();
  }

  struct Member {
    std::string name;
    GrammarSequence text;  // "name": value
    bool required = false;
  };

  GrammarSequence MemberText(const std::string& name, const GrammarElement& value) {
    GrammarSequence text =
        builder_.Text(Json(name).dump(-1, ' ', false, Json::error_handler_t::replace));
    text.push_back(json_.Ascii(":"));
    text.push_back(json_.Space());
    text.push_back(value);
    return text;
  }

  absl::StatusOr<std::vector<Member>> MembersOf(const Json& schema, const std::string& path,
                                                int depth) {
    std::vector<Member> members;
    if (schema.contains("properties")) {
      if (!schema["properties"].is_object())
        return SchemaError(path, "properties is not an object");
      for (const auto& [name, value] : schema["properties"].items()) {
        const std::string at = absl::StrCat(path, "/properties/", name);
        ASSIGN_OR_RETURN(const GrammarElement element, Convert(value, at, depth + 1));
        members.push_back({name, MemberText(name, element), false});
      }
    }
    if (!schema.contains("required")) return members;
    if (!schema["required"].is_array()) return SchemaError(path, "required is not an array");
    for (const Json& name : schema["required"]) {
      if (!name.is_string())
        return SchemaError(path, "required holds something that is not a text");
      const std::string& text = name.get_ref<const std::string&>();
      const auto found = std::find_if(members.begin(), members.end(),
                                      [&](const Member& member) { return member.name == text; });
      if (found != members.end()) {
        found->required = true;
        continue;
      }
      ASSIGN_OR_RETURN(const GrammarElement other, AdditionalValue(schema, path, depth));
      members.push_back({text, MemberText(text, other), true});
      RETURN_IF_ERROR(builder_.status());
    }
    return members;
  }

  // The value of a member that `properties` does not name.
  absl::StatusOr<GrammarElement> AdditionalValue(const Json& schema, const std::string& path,
                                                 int depth) {
    if (!schema.contains("additionalProperties")) return json_.Value();
    return Convert(schema["additionalProperties"], absl::StrCat(path, "/additionalProperties"),
                   depth + 1);
  }

  absl::StatusOr<GrammarElement> ConvertObject(const Json& schema, const std::string& path,
                                               int depth) {
    ASSIGN_OR_RETURN(const std::vector<Member> members, MembersOf(schema, path, depth));
    const bool has_key = schema.contains("additionalProperties");
    const bool open = has_key ? schema["additionalProperties"] != false : members.empty();
    std::optional<GrammarSequence> more;
    if (open) {
      std::vector<std::string> names;
      for (const Member& member : members) {
        if (member.name.size() > kLongestKey) {
          return SchemaError(path, "a name this long beside additionalProperties is not supported");
        }
        names.push_back(member.name);
      }
      ASSIGN_OR_RETURN(const GrammarElement value, AdditionalValue(schema, path, depth));
      const GrammarElement key = names.empty() ? json_.String() : json_.KeyBut(names);
      more = {key, json_.Ascii(":"), json_.Space(), value};
    }
    return ObjectOf(members, more);
  }

  // Members in order, each optional one there or not, then any number of `more`. `first` and `next`
  // are what can follow nothing and something.
  GrammarElement ObjectOf(const std::vector<Member>& members,
                          const std::optional<GrammarSequence>& more) {
    const GrammarSequence comma = {json_.Ascii(","), json_.Space()};
    const auto join = [](GrammarSequence a, const GrammarSequence& b) {
      a.insert(a.end(), b.begin(), b.end());
      return a;
    };
    GrammarSequence first, next;
    if (more) {
      next = builder_.Repeat(join(comma, *more), 0, -1);
      first = builder_.Optional(join(*more, next));
    }
    for (auto member = members.rbegin(); member != members.rend(); ++member) {
      // Shared, so that the whole stays linear.
      const GrammarSequence text = {builder_.Choice({member->text})};
      std::vector<GrammarSequence> start = {join(text, next)};
      std::vector<GrammarSequence> go_on = {join(join(comma, text), next)};
      if (!member->required) {
        start.push_back(first);
        go_on.push_back(next);
      }
      first = {builder_.Choice(std::move(start))};
      next = {builder_.Choice(std::move(go_on))};
    }
    GrammarSequence all = join({json_.Ascii("{"), json_.Space()}, first);
    return builder_.Choice({join(all, {json_.Space(), json_.Ascii("}")})});
  }

  absl::StatusOr<GrammarElement> ConvertArray(const Json& schema, const std::string& path,
                                              int depth) {
    ASSIGN_OR_RETURN(const int64_t least, CountOf(schema, "minItems", 0, path));
    ASSIGN_OR_RETURN(int64_t most, CountOf(schema, "maxItems", -1, path));
    std::vector<GrammarElement> prefix;
    if (schema.contains("prefixItems")) {
      if (!schema["prefixItems"].is_array())
        return SchemaError(path, "prefixItems is not an array");
      for (size_t i = 0; i < schema["prefixItems"].size(); ++i) {
        ASSIGN_OR_RETURN(
            prefix.emplace_back(),
            Convert(schema["prefixItems"][i], absl::StrCat(path, "/prefixItems/", i), depth + 1));
      }
    }
    GrammarElement item = json_.Value();
    if (schema.contains("items")) {
      ASSIGN_OR_RETURN(item, Convert(schema["items"], absl::StrCat(path, "/items"), depth + 1));
      const bool none = schema["items"] == false;
      const auto count = static_cast<int64_t>(prefix.size());
      if (none) most = most < 0 ? count : std::min(most, count);
    }
    if (most >= 0 && least > most) return SchemaError(path, "an array cannot have as many items");
    return ArrayOf(prefix, item, least, most);
  }

  GrammarElement ArrayOf(const std::vector<GrammarElement>& prefix, const GrammarElement& item,
                         int64_t least, int64_t most) {
    const GrammarSequence comma = {json_.Ascii(","), json_.Space()};
    const GrammarElement open = json_.Ascii("["), close = json_.Ascii("]");
    const GrammarSequence empty = {open, json_.Space(), close};
    if (most == 0) return builder_.Choice({empty});
    // What follows as many items as there are in the prefix, or one; then backwards.
    const auto count = std::max<int64_t>(std::ssize(prefix), 1);
    GrammarSequence rest;
    if (most < 0 || most > count) {
      rest = builder_.Repeat({comma[0], comma[1], item}, std::max<int64_t>(least - count, 0),
                             most < 0 ? -1 : most - count);
    }
    for (int64_t i = count - 1; i >= 1; --i) {
      if (most >= 0 && i >= most) continue;
      GrammarSequence more = {comma[0], comma[1], prefix[static_cast<size_t>(i)]};
      more.insert(more.end(), rest.begin(), rest.end());
      std::vector<GrammarSequence> ways = {std::move(more)};
      if (i >= least) ways.emplace_back();
      rest = {builder_.Choice(std::move(ways))};
    }
    GrammarSequence full = {open, json_.Space(), prefix.empty() ? item : prefix[0]};
    full.insert(full.end(), rest.begin(), rest.end());
    full.insert(full.end(), {json_.Space(), close});
    std::vector<GrammarSequence> ways = {std::move(full)};
    if (least == 0) ways.push_back(empty);
    return builder_.Choice(std::move(ways));
  }

  const Json& document_;
  GrammarBuilder& builder_;
  JsonRules json_;
  absl::flat_hash_map<std::string, int32_t> references_;
  std::vector<std::string>& ignored_;
  int64_t merges_left_ = kMostMerges;
};

}  // namespace

absl::StatusOr<GrammarElement> AddSchema(const Json& schema, GrammarBuilder& builder,
                                         std::vector<std::string>& ignored) {
  return Converter(schema, builder, ignored).Run();
}

absl::StatusOr<SchemaGrammar> SchemaToGrammar(const Json& schema, const GrammarLimits& limits) {
  GrammarBuilder builder(limits);
  std::vector<std::string> ignored;
  const int32_t root = builder.AddRule("root");
  ASSIGN_OR_RETURN(const GrammarElement value, AddSchema(schema, builder, ignored));
  builder.AddAlternative(root, {value});
  absl::StatusOr<Grammar> grammar = std::move(builder).Finish(root);
  if (!grammar.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("JSON schema: ", grammar.status().message()));
  }
  return SchemaGrammar{*std::move(grammar), std::move(ignored)};
}

absl::StatusOr<SchemaGrammar> SchemaToGrammar(std::string_view schema,
                                              const GrammarLimits& limits) {
  if (schema.size() > limits.source_bytes) {
    return absl::InvalidArgumentError(absl::StrCat("the JSON schema has ", schema.size(),
                                                   " bytes, at most ", limits.source_bytes));
  }
  const absl::StatusOr<Json> json = ParseJson(schema, JsonLimits{.depth = limits.nesting});
  if (!json.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("JSON schema: ", json.status().message()));
  }
  return SchemaToGrammar(*json, limits);
}

absl::StatusOr<Grammar> JsonObjectGrammar() {
  GrammarBuilder builder{GrammarLimits{}};
  JsonRules json(builder);
  const int32_t root = builder.AddRule("root");
  builder.AddAlternative(root, {json.Object()});
  return std::move(builder).Finish(root);
}

}  // namespace weft
