#include "coordinator/json/checked_json.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/absl_view.h"
#include "common/base/escaped_text.h"
#include "common/base/status_macros.h"

namespace weft {
namespace {

constexpr size_t kShownBytes = 64;
// Integers up to here are exact as floating-point numbers.
constexpr double kMaxExact = 9007199254740992.0;

// Gets the events of a parse and stops at what a tree of values would not show.
class SyntaxCheck : public nlohmann::json_sax<Json> {
 public:
  explicit SyntaxCheck(const JsonLimits& limits) : limits_(limits) {}

  bool null() override { return Count(); }
  bool boolean(bool) override { return Count(); }
  bool number_integer(int64_t) override { return Count(); }
  bool number_unsigned(uint64_t) override { return Count(); }
  bool number_float(double, const std::string&) override { return Count(); }
  bool string(std::string&) override { return Count(); }
  bool binary(Json::binary_t&) override { return true; }
  bool start_object(size_t) override { return Enter(); }
  bool start_array(size_t) override { return Enter(); }
  bool end_object() override { return Leave(); }
  bool end_array() override { return Leave(); }
  bool key(std::string& name) override {
    if (!keys_.back().insert(name).second) {
      return Refuse(
          absl::StrCat("key '", EscapedText(name, kShownBytes), "' stands twice in one object"));
    }
    if (keys_.back().size() <= limits_.members) return true;
    return Refuse(absl::StrCat("more than ", limits_.members, " keys in one object"));
  }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception& error) override {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: ..."
    const std::string_view text = error.what();
    const size_t start = text.find("] ");
    return Refuse(
        EscapedText(start == std::string_view::npos ? text : text.substr(start + 2), 512));
  }

  const absl::Status& status() const { return status_; }

 private:
  bool Enter() {
    if (static_cast<int>(keys_.size()) == limits_.depth) {
      return Refuse(
          absl::StrCat("more than ", limits_.depth, " objects and arrays inside each other"));
    }
    keys_.emplace_back();
    return Count();
  }
  bool Leave() {
    keys_.pop_back();
    return true;
  }

  bool Count() {
    if (++values_ <= limits_.values) return true;
    return Refuse(absl::StrCat("more than ", limits_.values, " values"));
  }
  bool Refuse(const std::string& what) {
    status_ = absl::InvalidArgumentError(what);
    return false;
  }

  const JsonLimits& limits_;
  int64_t values_ = 0;
  std::vector<std::set<std::string>> keys_;  // of each open object; empty for arrays
  absl::Status status_;
};

}  // namespace

absl::StatusOr<Json> ParseJson(std::string_view text, const JsonLimits& limits) {
  SyntaxCheck check(limits);
  Json::sax_parse(text, &check);
  RETURN_IF_ERROR(check.status());
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return absl::InvalidArgumentError("not JSON");
  return json;
}

absl::Status JsonValue::Error(const std::string& what) const {
  return absl::InvalidArgumentError(path_.empty() ? what : absl::StrCat(path_, ": ", what));
}

absl::Status JsonValue::CheckKeys(const std::vector<std::string_view>& keys) const {
  if (!json_->is_object()) return Error("want an object");
  for (const auto& [key, value] : json_->items()) {
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
    return Error(absl::StrCat(
        "unknown key '", EscapedText(key, kShownBytes), "'; known are ",
        absl::StrJoin(keys, ", ", [](std::string* out, std::string_view k) { out->append(k); })));
  }
  return absl::OkStatus();
}

absl::StatusOr<JsonValue> JsonValue::At(std::string_view key) const {
  const auto found = json_->find(key);
  const std::string path = absl::StrCat(path_, path_.empty() ? "" : ".", AbslView(key));
  if (found == json_->end() || found->is_null())
    return absl::InvalidArgumentError(absl::StrCat(path, ": is missing"));
  return JsonValue(*found, path);
}

std::optional<JsonValue> JsonValue::Find(std::string_view key) const {
  const auto found = json_->find(key);
  if (found == json_->end() || found->is_null()) return std::nullopt;
  return JsonValue(*found, absl::StrCat(path_, path_.empty() ? "" : ".", AbslView(key)));
}

absl::StatusOr<std::vector<JsonValue>> JsonValue::Elements(int64_t max_count) const {
  if (!json_->is_array()) return Error("want an array");
  if (static_cast<int64_t>(json_->size()) > max_count) {
    return Error(absl::StrCat(json_->size(), " elements, the limit is ", max_count));
  }
  std::vector<JsonValue> elements;
  elements.reserve(json_->size());
  for (size_t i = 0; i < json_->size(); ++i) {
    elements.emplace_back((*json_)[i], absl::StrCat(path_, "[", i, "]"));
  }
  return elements;
}

absl::StatusOr<std::string> JsonValue::Text(size_t max_bytes) const {
  const auto* text = json_->get_ptr<const std::string*>();
  if (text == nullptr) return Error("want a text");
  if (text->empty() || text->size() > max_bytes) {
    return Error(absl::StrCat("text of ", text->size(), " bytes, want 1 to ", max_bytes));
  }
  const bool has_control = std::any_of(text->begin(), text->end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
  });
  if (has_control) {
    return Error(absl::StrCat("'", EscapedText(*text, kShownBytes), "' has control characters"));
  }
  return *text;
}

absl::StatusOr<std::string> JsonValue::String(size_t max_bytes) const {
  const auto* text = json_->get_ptr<const std::string*>();
  if (text == nullptr) return Error("want a text");
  if (text->size() > max_bytes) {
    return Error(absl::StrCat("text of ", text->size(), " bytes, the limit is ", max_bytes));
  }
  return *text;
}

absl::StatusOr<bool> JsonValue::Bool() const {
  const auto* value = json_->get_ptr<const bool*>();
  if (value == nullptr) return Error("want true or false");
  return *value;
}

absl::StatusOr<int64_t> JsonValue::Integer(int64_t least, int64_t most) const {
  const auto wrong = [&] {
    return Error(absl::StrCat(EscapedText(json_->dump(-1, ' ', true), kShownBytes),
                              ", want an integer from ", least, " to ", most));
  };
  int64_t value = 0;
  if (const auto* positive = json_->get_ptr<const uint64_t*>()) {
    if (*positive > static_cast<uint64_t>(INT64_MAX)) return wrong();
    value = static_cast<int64_t>(*positive);
  } else if (const auto* integer = json_->get_ptr<const int64_t*>()) {
    value = *integer;
  } else if (const auto* number = json_->get_ptr<const double*>()) {
    if (!(std::fabs(*number) <= kMaxExact) || *number != std::trunc(*number)) return wrong();
    value = static_cast<int64_t>(*number);
  } else {
    return wrong();
  }
  if (value < least || value > most) return wrong();
  return value;
}

absl::StatusOr<double> JsonValue::Number(double least, double most) const {
  double value = std::numeric_limits<double>::quiet_NaN();
  if (json_->is_number()) value = json_->get<double>();
  if (value >= least && value <= most) return value;
  return Error(absl::StrCat(EscapedText(json_->dump(-1, ' ', true), kShownBytes),
                            ", want a number from ", least, " to ", most));
}

absl::StatusOr<double> JsonValue::Amount() const {
  const double value = json_->is_number() ? json_->get<double>() : -1;
  if (!std::isfinite(value) || value < 0) return Error("want a finite number >= 0");
  return value;
}

}  // namespace weft
