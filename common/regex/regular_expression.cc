#define PCRE2_CODE_UNIT_WIDTH 8
#include "common/regex/regular_expression.h"

#include <pcre2.h>

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/status_macros.h"
#include "common/base/utf8.h"

namespace weft {
namespace {

// White_Space as the inside of a bracket. PCRE2's own \s also has U+180E.
constexpr std::string_view kWhiteSpace =
    R"(\x{9}-\x{d}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";

// Writes \s and \S out. Only \s may stand inside brackets.
std::string ExpandWhiteSpace(std::string_view expression) {
  std::string out;
  bool in_brackets = false;
  for (size_t i = 0; i < expression.size(); ++i) {
    const char character = expression[i];
    if (character != '\\' || i + 1 == expression.size()) {
      if (character == '[') in_brackets = true;
      if (character == ']') in_brackets = false;
      out.push_back(character);
      continue;
    }
    const char escaped = expression[++i];
    if (escaped == 's' && in_brackets) {
      out.append(kWhiteSpace);
    } else if (escaped == 's' || escaped == 'S') {
      absl::StrAppend(&out, escaped == 's' ? "[" : "[^", AbslView(kWhiteSpace), "]");
    } else {
      out.push_back('\\');
      out.push_back(escaped);
    }
  }
  return out;
}

std::string LibraryMessage(int code) {
  char message[256];
  const int length =
      pcre2_get_error_message(code, reinterpret_cast<PCRE2_UCHAR*>(message), sizeof(message));
  return length < 0 ? absl::StrCat("code ", code) : std::string(message, length);
}

struct MatchDataDeleter {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};
struct MatchContextDeleter {
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};

int CountStep(pcre2_callout_block* /*block*/, void* steps) {
  ++*static_cast<int64_t*>(steps);
  return 0;
}

// What one thread needs to match.
struct Matcher {
  std::unique_ptr<pcre2_match_data, MatchDataDeleter> data;
  std::unique_ptr<pcre2_match_context, MatchContextDeleter> context;
};

absl::StatusOr<Matcher> MakeMatcher(const pcre2_code* code, int64_t* steps) {
  Matcher matcher;
  matcher.data.reset(pcre2_match_data_create_from_pattern(code, nullptr));
  matcher.context.reset(pcre2_match_context_create(nullptr));
  if (matcher.data == nullptr || matcher.context == nullptr) {
    return absl::ResourceExhaustedError("out of memory while splitting text");
  }
  // The default limits count characters that a repeat gives back one by one, and would make long
  // runs an error. The expressions of the table take linear time, so there is nothing to limit.
  pcre2_set_match_limit(matcher.context.get(), UINT32_MAX);
  pcre2_set_depth_limit(matcher.context.get(), UINT32_MAX);
  if (steps != nullptr) pcre2_set_callout(matcher.context.get(), CountStep, steps);
  return matcher;
}

// What a search may try and how deep it may nest before it gives up: a hundred times what sensible
// expressions need on the longest tensor name.
constexpr uint32_t kMaxSearchSteps = 200000;
constexpr uint32_t kMaxSearchDepth = 10000;

// Finds the first match in `piece` from `offset` on. Returns false if there is none.
absl::StatusOr<bool> FindMatch(const pcre2_code* code, std::string_view piece, size_t offset,
                               const Matcher& matcher) {
  const auto match = [&](uint32_t options) {
    return pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(piece.data()), piece.size(), offset,
                       PCRE2_NO_UTF_CHECK | options, matcher.data.get(), matcher.context.get());
  };
  int code_of_match = match(0);
  if (code_of_match == PCRE2_ERROR_JIT_STACKLIMIT) code_of_match = match(PCRE2_NO_JIT);
  if (code_of_match == PCRE2_ERROR_NOMATCH) return false;
  if (code_of_match < 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot split text: ", LibraryMessage(code_of_match)));
  }
  return true;
}

absl::Status SplitPiece(const pcre2_code* code, std::string_view piece, const Matcher& matcher,
                        std::vector<std::string_view>* out) {
  size_t done = 0;    // everything before it is in `out`
  size_t offset = 0;  // where to look next
  while (offset < piece.size()) {
    ASSIGN_OR_RETURN(const bool found, FindMatch(code, piece, offset, matcher));
    if (!found) break;
    const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(matcher.data.get());
    if (bounds[1] <= bounds[0]) {
      // An empty match splits nothing.
      if (bounds[0] >= piece.size()) break;
      offset = bounds[0] + std::max<size_t>(1, Utf8SequenceLength(piece.substr(bounds[0])));
      continue;
    }
    if (bounds[0] > done) out->push_back(piece.substr(done, bounds[0] - done));
    out->push_back(piece.substr(bounds[0], bounds[1] - bounds[0]));
    done = offset = bounds[1];
  }
  if (done < piece.size()) out->push_back(piece.substr(done));
  return absl::OkStatus();
}

}  // namespace

struct RegularExpression::State {
  struct CodeDeleter {
    void operator()(pcre2_code* compiled) const { pcre2_code_free(compiled); }
  };
  std::unique_ptr<pcre2_code, CodeDeleter> code;
  RegularExpressionMode mode = RegularExpressionMode::kFast;
};

RegularExpression::RegularExpression(std::unique_ptr<State> state) : state_(std::move(state)) {}
RegularExpression::~RegularExpression() = default;

absl::StatusOr<std::unique_ptr<RegularExpression>> RegularExpression::Create(
    std::string_view expression, RegularExpressionMode mode) {
  const bool search = mode == RegularExpressionMode::kSearch;
  const std::string expanded = search ? std::string(expression) : ExpandWhiteSpace(expression);
  uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C | PCRE2_DOLLAR_ENDONLY;
  if (mode == RegularExpressionMode::kCountSteps) options |= PCRE2_AUTO_CALLOUT;
  int error_code = 0;
  PCRE2_SIZE error_offset = 0;
  auto state = std::make_unique<State>();
  state->mode = mode;
  state->code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(expanded.data()), expanded.size(),
                                  options, &error_code, &error_offset, nullptr));
  if (state->code == nullptr) {
    const std::string text = absl::StrCat("regular expression '", expanded, "' at ", error_offset,
                                          ": ", LibraryMessage(error_code));
    return search ? absl::InvalidArgumentError(text) : absl::InternalError(text);
  }
  // Where machine code is not to be had (other processors, hardened systems) pcre2_match()
  // interprets.
  if (mode == RegularExpressionMode::kFast)
    pcre2_jit_compile(state->code.get(), PCRE2_JIT_COMPLETE);
  // Not make_unique: the constructor is private.
  return std::unique_ptr<RegularExpression>(new RegularExpression(std::move(state)));
}

absl::StatusOr<std::vector<std::string_view>> RegularExpression::SplitAll(
    const std::vector<std::string_view>& pieces, int64_t* steps) const {
  const bool counts = state_->mode == RegularExpressionMode::kCountSteps;
  ASSIGN_OR_RETURN(const Matcher matcher,
                   MakeMatcher(state_->code.get(), counts ? steps : nullptr));
  std::vector<std::string_view> out;
  out.reserve(pieces.size());
  for (const std::string_view piece : pieces) {
    RETURN_IF_ERROR(SplitPiece(state_->code.get(), piece, matcher, &out));
  }
  return out;
}

absl::StatusOr<bool> RegularExpression::Contains(std::string_view text) const {
  if (!IsUtf8(text)) return absl::InvalidArgumentError("text that is not UTF-8");
  ASSIGN_OR_RETURN(const Matcher matcher, MakeMatcher(state_->code.get(), nullptr));
  pcre2_set_match_limit(matcher.context.get(), kMaxSearchSteps);
  pcre2_set_depth_limit(matcher.context.get(), kMaxSearchDepth);
  const int code =
      pcre2_match(state_->code.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), 0,
                  PCRE2_NO_UTF_CHECK, matcher.data.get(), matcher.context.get());
  if (code == PCRE2_ERROR_NOMATCH) return false;
  if (code < 0) return absl::ResourceExhaustedError(LibraryMessage(code));
  return true;
}

}  // namespace weft
