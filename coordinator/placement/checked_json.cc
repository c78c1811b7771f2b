#include "coordinator/placement/checked_json.h"

#include <algorithm>
#include <cmath>
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
class SyntaxCheck : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit SyntaxCheck(int max_depth) : max_depth_(max_depth) {}

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(int64_t) override { return true; }
  bool number_unsigned(uint64_t) override { return true; }
  bool number_float(double, const std::string&) override { return true; }
  bool string(std::string&) override { return true; }
  bool binary(nlohmann::json::binary_t&) override { return true; }
  bool start_object(size_t) override { return Enter(); }
  bool start_array(size_t) override { return Enter(); }
  bool end_object() override { return Leave(); }
  bool end_array() override { return Leave(); }
  bool key(std::string& name) override {
    if (keys_.back().insert(name).second) return true;
    status_ = absl::InvalidArgumentError(
        absl::StrCat("key '", EscapedText(name, kShownBytes), "' stands twice in one object"));
    return false;
  }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception& error) override {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: ..."
    const std::string_view text = error.what();
    const size_t start = text.find("] ");
    status_ = absl::InvalidArgumentError(
        EscapedText(start == std::string_view::npos ? text : text.substr(start + 2), 512));
    return false;
  }

  const absl::Status& status() const { return status_; }

 private:
  bool Enter() {
    if (static_cast<int>(keys_.size()) == max_depth_) {
      status_ = absl::InvalidArgumentError(
          absl::StrCat("more than ", max_depth_, " objects and arrays inside each other"));
      return false;
    }
    keys_.emplace_back();
    return true;
  }
  bool Leave() {
    keys_.pop_back();
    return true;
  }

  const int max_depth_;
  std::vector<std::set<std::string>> keys_;  // of each open object; empty for arrays
  absl::Status status_;
};

}  // namespace

absl::StatusOr<nlohmann::json> ParseJson(std::string_view text, int max_depth) {
  SyntaxCheck check(max_depth);
  nlohmann::json::sax_parse(text, &check);
  RETURN_IF_ERROR(check.status());
  nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
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
  if (found == json_->end()) return Error(absl::StrCat("key '", AbslView(key), "' is missing"));
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

absl::StatusOr<double> JsonValue::Amount() const {
  double value = -1;
  if (const auto* positive = json_->get_ptr<const uint64_t*>()) {
    value = static_cast<double>(*positive);
  } else if (const auto* number = json_->get_ptr<const double*>()) {
    value = *number;
  }
  if (!std::isfinite(value) || value < 0) return Error("want a finite number >= 0");
  return value;
}

}  // namespace weft
