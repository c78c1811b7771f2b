// The marks that stand around the parts of replies.
#pragma once

#include <string_view>

namespace weft::marker {

inline constexpr std::string_view kThink = "<think>";
inline constexpr std::string_view kEndThink = "</think>";

// Hermes, Qwen.
inline constexpr std::string_view kToolCall = "<tool_call>";
inline constexpr std::string_view kEndToolCall = "</tool_call>";

// Llama 3.
inline constexpr std::string_view kPythonTag = "<|python_tag|>";

// gpt-oss.
inline constexpr std::string_view kChannel = "<|channel|>";
inline constexpr std::string_view kMessage = "<|message|>";
inline constexpr std::string_view kStart = "<|start|>";
inline constexpr std::string_view kEnd = "<|end|>";
inline constexpr std::string_view kReturn = "<|return|>";
inline constexpr std::string_view kCall = "<|call|>";
inline constexpr std::string_view kConstrain = "<|constrain|>";

// DeepSeek: U+FF5C is the bar, U+2581 the low line between words.
#define WEFT_DEEPSEEK(a, b, c) "<\xEF\xBD\x9C" a "\xE2\x96\x81" b "\xE2\x96\x81" c "\xEF\xBD\x9C>"
inline constexpr std::string_view kCallsBegin = WEFT_DEEPSEEK("tool", "calls", "begin");
inline constexpr std::string_view kCallBegin = WEFT_DEEPSEEK("tool", "call", "begin");
inline constexpr std::string_view kCallEnd = WEFT_DEEPSEEK("tool", "call", "end");
inline constexpr std::string_view kCallsEnd = WEFT_DEEPSEEK("tool", "calls", "end");
#undef WEFT_DEEPSEEK
inline constexpr std::string_view kSeparator = "<\xEF\xBD\x9Ctool\xE2\x96\x81sep\xEF\xBD\x9C>";

}  // namespace weft::marker
