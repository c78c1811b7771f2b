#include "coordinator/chat/jinja/token_stream.h"

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/escaped_text.h"

namespace weft::jinja {
namespace {

constexpr size_t kShownBytes = 40;

std::string Describe(TokenKind kind, std::string_view text) {
  switch (kind) {
    case TokenKind::kText:
      return "text";
    case TokenKind::kVariableBegin:
      return "'{{'";
    case TokenKind::kVariableEnd:
      return "'}}'";
    case TokenKind::kBlockBegin:
      return "'{%'";
    case TokenKind::kBlockEnd:
      return "'%}'";
    case TokenKind::kEnd:
      return "the end of the template";
    default:
      return absl::StrCat("'", EscapedText(text, kShownBytes), "'");
  }
}

}  // namespace

absl::Status TokenStream::Unexpected(std::string_view wanted) const {
  return ErrorAt(line(), absl::StrCat("unexpected ", Describe(current().kind, current().text),
                                      ", want ", AbslView(wanted)));
}

absl::Status TokenStream::ExpectOperator(std::string_view text) {
  if (!AtOperator(text)) return Unexpected(absl::StrCat("'", AbslView(text), "'"));
  Advance();
  return absl::OkStatus();
}

absl::Status TokenStream::ExpectName(std::string_view text) {
  if (!AtName(text)) return Unexpected(absl::StrCat("'", AbslView(text), "'"));
  Advance();
  return absl::OkStatus();
}

absl::Status TokenStream::Expect(TokenKind kind) {
  if (!At(kind)) return Unexpected(Describe(kind, ""));
  Advance();
  return absl::OkStatus();
}

absl::StatusOr<std::string> TokenStream::ExpectAnyName() {
  if (!At(TokenKind::kName)) return Unexpected("a name");
  std::string name = current().text;
  Advance();
  return name;
}

}  // namespace weft::jinja
