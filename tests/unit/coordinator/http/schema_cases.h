// Bodies that a reader of them must refuse, and how.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "coordinator/http/api_error.h"
#include "gtest/gtest.h"

namespace weft {

struct Refused {
  std::string body;
  std::string param;
  std::string part;  // of the message
  int http_status = 400;
};

// `read` takes a body and returns a status or StatusOr.
template <typename Read>
void CheckRefusals(const std::vector<Refused>& cases, Read read) {
  for (const Refused& refused : cases) {
    const auto result = read(refused.body);
    ASSERT_FALSE(result.ok()) << refused.body.substr(0, 200);
    const ApiError error = ApiErrorOf(result.status());
    EXPECT_EQ(error.http_status, refused.http_status) << refused.body.substr(0, 200);
    EXPECT_EQ(error.param, refused.param) << error.message;
    EXPECT_NE(error.message.find(refused.part), std::string::npos) << error.message;
  }
}

// Gives `read` the body as often as it has values, with one of them replaced by another kind of
// value each time. Whatever it says of it: it must come back.
template <typename Read>
void ReadWithEachValueReplaced(const std::string& body, Read read) {
  using AnyJson = nlohmann::ordered_json;
  const AnyJson whole = AnyJson::parse(body);
  std::vector<AnyJson::json_pointer> places;
  using Find = std::function<void(const AnyJson&, const AnyJson::json_pointer&)>;
  const Find find = [&](const AnyJson& value, const AnyJson::json_pointer& place) {
    places.push_back(place);
    if (value.is_object()) {
      for (const auto& [key, inner] : value.items()) find(inner, place / key);
    } else if (value.is_array()) {
      for (size_t i = 0; i < value.size(); ++i) find(value[i], place / i);
    }
  };
  find(whole, AnyJson::json_pointer(""));
  EXPECT_GT(places.size(), 1u);
  for (const AnyJson::json_pointer& place : places) {
    for (const char* other :
         {"null", "true", "-1", "1e300", R"("")", R"("x")", "[]", "[null]", "{}"}) {
      AnyJson changed = whole;
      changed[place] = AnyJson::parse(other);
      const auto result = read(changed.dump());
      if (result.ok()) continue;
      EXPECT_NE(ApiErrorOf(result.status()).message, "") << changed.dump();
    }
  }
}

}  // namespace weft
