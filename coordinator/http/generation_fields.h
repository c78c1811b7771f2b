// The fields that chat and text completions share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/json/checked_json.h"
#include "coordinator/sampling/sampler_options.h"

namespace weft {

// Limits of what a body may ask for; longer is refused.
inline constexpr int64_t kMostChoices = 128;
inline constexpr int64_t kMostStops = 16;
inline constexpr size_t kLongestStop = 1024;             // bytes
inline constexpr int64_t kMostTopLogProbabilities = 20;  // beside the chosen one
inline constexpr size_t kLongestName = 512;              // of models, users, functions
inline constexpr size_t kLongestGrammar = size_t{1} << 20;

enum class OutputFormat : uint8_t { kText, kJsonObject, kJsonSchema, kGrammar };

// NOLINTNEXTLINE(bugprone-exception-escape): the library says that moving JSON does not throw.
struct GenerationFields {
  std::string model;       // empty: whichever there is
  SamplerOptions sampler;  // without a seed
  std::optional<std::vector<std::string>> dry_breakers;
  std::optional<uint64_t> seed;
  int64_t max_tokens = -1;
  int64_t choices = 1;
  std::vector<std::string> stop;
  bool ignore_end = false;
  bool stream = false;
  bool include_usage = false;      // a last chunk with it
  int32_t log_probabilities = -1;  // of each token: its own and this many of the likeliest
  OutputFormat format = OutputFormat::kText;
  std::string grammar;         // kGrammar: in GBNF
  Json schema;                 // kJsonSchema
  double timeout_seconds = 0;  // 0: none
};

// `defaults`: what holds where the body says nothing. The body has no other fields than those read
// here, a few that change nothing, and `others`. Errors: INVALID_ARGUMENT as "FIELD: what is
// wrong"; UNIMPLEMENTED in the same form for what this server cannot do.
absl::StatusOr<GenerationFields> ReadGenerationFields(const JsonValue& body,
                                                      const SamplerOptions& defaults,
                                                      const std::vector<std::string_view>& others);

// --- For the fields beside them ---

// The body is an object without other keys than these.
absl::Status CheckFields(const JsonValue& body, const std::vector<std::string_view>& known);
// {"model": ...}, empty if there is none.
absl::StatusOr<std::string> ReadModel(const JsonValue& body);
// One text or a list of them.
absl::StatusOr<std::vector<std::string>> ReadTexts(const JsonValue& value, int64_t most,
                                                   size_t most_bytes);
// `fallback` if the field is missing or null.
absl::StatusOr<bool> ReadBool(const JsonValue& body, std::string_view name, bool fallback);
absl::StatusOr<int64_t> ReadInteger(const JsonValue& body, std::string_view name, int64_t fallback,
                                    int64_t least, int64_t most);

}  // namespace weft
