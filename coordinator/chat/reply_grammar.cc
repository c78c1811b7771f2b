#include "coordinator/chat/reply_grammar.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/escaped_text.h"
#include "common/base/status_macros.h"
#include "coordinator/chat/reply_calls.h"
#include "coordinator/chat/reply_markers.h"
#include "coordinator/grammar/json_rules.h"
#include "coordinator/grammar/json_schema.h"
#include "coordinator/grammar/text_until.h"

namespace weft {
namespace {

constexpr int64_t kMostSpace = 4;  // behind thoughts

GrammarSequence Join(std::initializer_list<GrammarSequence> parts) {
  GrammarSequence all;
  for (const GrammarSequence& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

class ReplyRules {
 public:
  ReplyRules(const ReplyOptions& reply, const ReplyBounds& bounds, const Tokenizer& tokenizer,
             GrammarBuilder& builder)
      : reply_(reply), bounds_(bounds), tokenizer_(tokenizer), builder_(builder), json_(builder) {}

  absl::StatusOr<int32_t> Build() {
    const int32_t root = builder_.AddRule("reply");
    std::vector<GrammarSequence> ways;
    if (bounds_.answer) {
      ASSIGN_OR_RETURN(const GrammarElement answer, bounds_.answer(builder_));
      ways.push_back(Answer(answer));
    }
    if (bounds_.tools != nullptr) {
      ASSIGN_OR_RETURN(const GrammarElement calls, Calls());
      ways.push_back({calls});
    }
    if (ways.empty()) return absl::UnimplementedError("nothing is asked of the reply");
    builder_.AddAlternative(root, Join({Thoughts(), {builder_.Choice(std::move(ways))}}));
    return root;
  }

 private:
  bool harmony() const { return reply_.format.calls == CallFormat::kHarmony; }

  // The control token of this text; nothing if it is text like any other.
  std::optional<int32_t> ControlToken(std::string_view text) const {
    const Vocabulary& vocabulary = tokenizer_.vocabulary();
    const TokenId id = vocabulary.Find(text);
    if (id == kNoToken || vocabulary.type(id) != TokenType::kControl) return std::nullopt;
    return id;
  }

  bool Ends(std::string_view marker) const {
    const std::optional<int32_t> token = ControlToken(marker);
    return token.has_value() && tokenizer_.IsEndOfGeneration(*token);
  }

  GrammarSequence Text(std::string_view text) { return builder_.Text(AbslView(text)); }

  GrammarSequence Marker(std::string_view text) {
    const std::optional<int32_t> token = ControlToken(text);
    return token.has_value() ? GrammarSequence{builder_.Token(*token)} : Text(text);
  }

  // A mark that may be what ends the reply; then the end stands for it.
  GrammarSequence LastMarker(std::string_view text) {
    return Ends(text) ? GrammarSequence{} : Marker(text);
  }

  // Any text up to the first mark, and the mark.
  GrammarSequence Until(std::string_view marker) {
    const std::optional<int32_t> token = ControlToken(marker);
    if (!token.has_value()) return {TextUntil(marker, builder_)};
    const GrammarElement any = builder_.Class(MakeCharacterClass({}, true));
    return Join({builder_.Repeat({any}, 0, -1), {builder_.Token(*token)}});
  }

  GrammarSequence Thoughts() {
    if (harmony()) {
      if (Ends(marker::kEnd)) return {};
      // Some of its marks are text to a tokenizer, and any of them would end the thoughts.
      return builder_.Optional(Join({Marker(marker::kChannel),
                                     Text("analysis"),
                                     Marker(marker::kMessage),
                                     {TextWithout("<|", builder_)},
                                     Marker(marker::kEnd),
                                     Marker(marker::kStart),
                                     Text("assistant")}));
    }
    if (!reply_.format.think) return {};
    GrammarSequence rest =
        Join({Until(marker::kEndThink), builder_.Repeat({json_.Ascii(" \n")}, 0, kMostSpace)});
    if (reply_.thoughts_opened) return rest;
    return builder_.Optional(Join({Marker(marker::kThink), rest}));
  }

  GrammarSequence Answer(const GrammarElement& answer) {
    if (!harmony()) return {answer};
    return Join({Marker(marker::kChannel), Text("final"), Marker(marker::kMessage), {answer}});
  }

  absl::StatusOr<GrammarElement> Calls() {
    if (reply_.format.calls == CallFormat::kNone) {
      return absl::UnimplementedError("tool_choice: how this model calls tools is not known");
    }
    std::vector<GrammarSequence> one;
    for (size_t i = 0; i < bounds_.tools->size(); ++i) {
      const Json& function = (*bounds_.tools)[i]["function"];
      const std::string& name = function["name"].get_ref<const std::string&>();
      if (!bounds_.function.empty() && name != bounds_.function) continue;
      const std::string field = absl::StrCat("tools[", i, "].function");
      if (!MakeCall(name, "{}").has_value()) {
        return absl::InvalidArgumentError(
            absl::StrCat(field, ".name: '", EscapedText(name, 64), "' is no name of a function"));
      }
      ASSIGN_OR_RETURN(const GrammarElement arguments, Arguments(function, field));
      one.push_back(Call(name, arguments));
    }
    if (one.empty()) return absl::InvalidArgumentError("tools: there are none");
    return Section(builder_.Choice(std::move(one)));
  }

  absl::StatusOr<GrammarElement> Arguments(const Json& function, const std::string& field) {
    if (!function.contains("parameters") || function["parameters"].is_null()) {
      return builder_.Choice({Text("{}")});
    }
    const Json& schema = function["parameters"];
    // Tried apart: what goes wrong half-way leaves rules without an end.
    const absl::Status usable = SchemaToGrammar(schema, builder_.limits()).status();
    if (usable.ok()) {
      std::vector<std::string> ignored;
      return AddSchema(schema, builder_, ignored);
    }
    if (function.contains("strict") && function["strict"] == true) {
      return absl::InvalidArgumentError(absl::StrCat(field, ".parameters: ", usable.message()));
    }
    return json_.Object();
  }

  GrammarSequence Call(const std::string& name, const GrammarElement& arguments) {
    const std::string quoted = JsonLine(Json(name));
    switch (reply_.format.calls) {
      case CallFormat::kHarmony:
        return Join({Marker(marker::kChannel),
                     Text("commentary to=functions."),
                     Text(name),
                     Text(" "),
                     Marker(marker::kConstrain),
                     Text("json"),
                     Marker(marker::kMessage),
                     {arguments},
                     LastMarker(marker::kCall)});
      case CallFormat::kDeepSeek:
        if (reply_.format.fenced) {
          return Join({Marker(marker::kCallBegin),
                       Text("function"),
                       Marker(marker::kSeparator),
                       Text(name),
                       Text("\n```json\n"),
                       {arguments},
                       Text("\n```"),
                       Marker(marker::kCallEnd)});
        }
        return Join({Marker(marker::kCallBegin),
                     Text(name),
                     Marker(marker::kSeparator),
                     {arguments},
                     Marker(marker::kCallEnd)});
      case CallFormat::kLlama:
        return Join({Text(absl::StrCat("{\"name\": ", quoted, ", \"parameters\": ")),
                     {arguments},
                     Text("}")});
      case CallFormat::kHermes:
      case CallFormat::kNone:
        break;
    }
    return Join({Marker(marker::kToolCall),
                 Text(absl::StrCat("\n{\"name\": ", quoted, ", \"arguments\": ")),
                 {arguments},
                 Text("}\n"),
                 LastMarker(marker::kEndToolCall)});
  }

  // One call, or several where the format has them.
  GrammarElement Section(const GrammarElement& call) {
    GrammarSequence all = {call};
    const bool closes = reply_.format.calls == CallFormat::kHermes && Ends(marker::kEndToolCall);
    if (bounds_.several_calls && !harmony() && !closes) {
      const std::string_view between = reply_.format.calls == CallFormat::kLlama ? "; " : "\n";
      all = Join({all, builder_.Repeat(Join({Text(between), {call}}), 0, -1)});
    }
    if (reply_.format.calls == CallFormat::kDeepSeek) {
      all = Join({Marker(marker::kCallsBegin), all, LastMarker(marker::kCallsEnd)});
    }
    return builder_.Choice({std::move(all)});
  }

  const ReplyOptions& reply_;
  const ReplyBounds& bounds_;
  const Tokenizer& tokenizer_;
  GrammarBuilder& builder_;
  JsonRules json_;
};

}  // namespace

absl::StatusOr<Grammar> MakeReplyGrammar(const ReplyOptions& reply, const ReplyBounds& bounds,
                                         const Tokenizer& tokenizer) {
  GrammarBuilder builder{GrammarLimits{}};
  ASSIGN_OR_RETURN(const int32_t root, ReplyRules(reply, bounds, tokenizer, builder).Build());
  return std::move(builder).Finish(root);
}

}  // namespace weft
