// Bodies that a reader of them must refuse, and how.
#pragma once

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

}  // namespace weft
