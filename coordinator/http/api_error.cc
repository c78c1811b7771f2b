#include "coordinator/http/api_error.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "common/base/absl_view.h"

namespace weft {
namespace {

struct CodeRow {
  absl::StatusCode code;
  int http_status;
  const char* type;
  const char* word;
};

// Whatever is not listed is our fault: 500.
constexpr CodeRow kCodeRows[] = {
    {absl::StatusCode::kInvalidArgument, 400, "invalid_request_error", ""},
    {absl::StatusCode::kOutOfRange, 400, "invalid_request_error", ""},
    {absl::StatusCode::kFailedPrecondition, 400, "invalid_request_error", ""},
    {absl::StatusCode::kUnauthenticated, 401, "authentication_error", "invalid_api_key"},
    {absl::StatusCode::kPermissionDenied, 403, "permission_error", ""},
    {absl::StatusCode::kNotFound, 404, "invalid_request_error", "model_not_found"},
    {absl::StatusCode::kResourceExhausted, 429, "rate_limit_error", "queue_full"},
    {absl::StatusCode::kCancelled, 499, "request_cancelled", ""},
    {absl::StatusCode::kUnimplemented, 501, "not_implemented_error", "unsupported"},
    {absl::StatusCode::kUnavailable, 503, "service_unavailable_error", "unavailable"},
    {absl::StatusCode::kDeadlineExceeded, 504, "timeout_error", "deadline_exceeded"},
};

bool IsOfField(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '[' ||
         c == ']';
}

// "tools[0].type" of "tools[0].type: want function".
std::string FieldOf(std::string_view message) {
  const size_t end = message.find(": ");
  if (end == std::string_view::npos || end == 0) return "";
  const std::string_view field = message.substr(0, end);
  return std::all_of(field.begin(), field.end(), IsOfField) ? std::string(field) : "";
}

}  // namespace

absl::Status OfField(std::string_view field, const absl::Status& status) {
  return {status.code(), absl::StrCat(AbslView(field), ": ", status.message())};
}

ApiError ApiErrorOf(const absl::Status& status) {
  ApiError error;
  error.message = std::string(status.message());
  error.type = "server_error";
  for (const CodeRow& row : kCodeRows) {
    if (row.code != status.code()) continue;
    error.http_status = row.http_status;
    error.type = row.type;
    error.code = row.word;
  }
  if (error.http_status == 400 || error.http_status == 404 || error.http_status == 501) {
    error.param = FieldOf(StdView(status.message()));
  }
  return error;
}

Json ApiErrorJson(const ApiError& error) {
  const auto or_null = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
  return {{"error",
           {{"message", error.message},
            {"type", error.type},
            {"param", or_null(error.param)},
            {"code", or_null(error.code)}}}};
}

std::string JsonText(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace weft
