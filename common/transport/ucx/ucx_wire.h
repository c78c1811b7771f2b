// The fixed headers of the messages between two ports over UCX, little-endian. Everything here came
// from outside: decoding checks lengths and constants and nothing else; what the numbers mean is
// the reader's to check.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "absl/types/span.h"
#include "common/transport/message_port.h"

namespace weft {

// Active message ids.
inline constexpr unsigned kHelloMessage = 17;   // the first from whoever connects; a Hello
inline constexpr unsigned kAnswerMessage = 18;  // to a hello, and to a welcome; an Answer
inline constexpr unsigned kDataMessage = 19;    // header: a MessageHeader; data: the payload

struct Hello {
  uint64_t session = 0;
  int32_t from = 0;
  int32_t to = 0;
  PeerToken token = {};
};

enum class Answer : uint32_t { kWelcome = 1, kRefused = 2 };

inline constexpr size_t kHelloBytes = 40;
inline constexpr size_t kAnswerBytes = 12;
inline constexpr size_t kDataHeaderBytes = 24;

std::array<uint8_t, kHelloBytes> EncodeHello(const Hello& hello);
std::array<uint8_t, kAnswerBytes> EncodeAnswer(Answer answer);
std::array<uint8_t, kDataHeaderBytes> EncodeDataHeader(const MessageHeader& header);

// Nothing where the bytes are not one. A hello of another version of this protocol is none.
std::optional<Hello> DecodeHello(absl::Span<const uint8_t> bytes);
std::optional<Answer> DecodeAnswer(absl::Span<const uint8_t> bytes);
std::optional<MessageHeader> DecodeDataHeader(absl::Span<const uint8_t> bytes);

// Whether two tokens are equal, in a time that does not tell where they differ.
bool SameToken(const PeerToken& a, const PeerToken& b);

}  // namespace weft
