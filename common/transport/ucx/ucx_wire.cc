#include "common/transport/ucx/ucx_wire.h"

#include <algorithm>
#include <string_view>

#include "common/base/equal_secrets.h"

namespace weft {
namespace {

constexpr uint32_t kMagic = 0x74666577;  // "weft"
constexpr uint32_t kVersion = 1;

// Writes numbers behind each other.
class Writer {
 public:
  explicit Writer(uint8_t* place) : place_(place) {}
  template <typename T>
  void Put(T value) {
    for (size_t i = 0; i < sizeof(T); ++i) {
      *place_++ = static_cast<uint8_t>(static_cast<uint64_t>(value) >> (8 * i));
    }
  }

 private:
  uint8_t* place_;
};

// Reads them back; the caller checked the length.
class Reader {
 public:
  explicit Reader(const uint8_t* place) : place_(place) {}
  template <typename T>
  T Get() {
    uint64_t value = 0;
    for (size_t i = 0; i < sizeof(T); ++i) value |= static_cast<uint64_t>(*place_++) << (8 * i);
    return static_cast<T>(value);
  }

 private:
  const uint8_t* place_;
};

}  // namespace

std::array<uint8_t, kHelloBytes> EncodeHello(const Hello& hello) {
  std::array<uint8_t, kHelloBytes> bytes = {};
  Writer writer(bytes.data());
  writer.Put(kMagic);
  writer.Put(kVersion);
  writer.Put(hello.session);
  writer.Put(hello.from);
  writer.Put(hello.to);
  std::copy(hello.token.begin(), hello.token.end(), bytes.end() - hello.token.size());
  return bytes;
}

std::array<uint8_t, kAnswerBytes> EncodeAnswer(Answer answer) {
  std::array<uint8_t, kAnswerBytes> bytes = {};
  Writer writer(bytes.data());
  writer.Put(kMagic);
  writer.Put(kVersion);
  writer.Put(static_cast<uint32_t>(answer));
  return bytes;
}

std::array<uint8_t, kDataHeaderBytes> EncodeDataHeader(const MessageHeader& header) {
  std::array<uint8_t, kDataHeaderBytes> bytes = {};
  Writer writer(bytes.data());
  writer.Put(header.epoch);
  writer.Put(header.kind);
  writer.Put(header.step);
  writer.Put(header.id);
  writer.Put(uint32_t{0});
  return bytes;
}

std::optional<Hello> DecodeHello(absl::Span<const uint8_t> bytes) {
  if (bytes.size() != kHelloBytes) return std::nullopt;
  Reader reader(bytes.data());
  if (reader.Get<uint32_t>() != kMagic || reader.Get<uint32_t>() != kVersion) return std::nullopt;
  Hello hello;
  hello.session = reader.Get<uint64_t>();
  hello.from = reader.Get<int32_t>();
  hello.to = reader.Get<int32_t>();
  std::copy(bytes.end() - hello.token.size(), bytes.end(), hello.token.begin());
  return hello;
}

std::optional<Answer> DecodeAnswer(absl::Span<const uint8_t> bytes) {
  if (bytes.size() != kAnswerBytes) return std::nullopt;
  Reader reader(bytes.data());
  if (reader.Get<uint32_t>() != kMagic || reader.Get<uint32_t>() != kVersion) return std::nullopt;
  const uint32_t answer = reader.Get<uint32_t>();
  if (answer != static_cast<uint32_t>(Answer::kWelcome) &&
      answer != static_cast<uint32_t>(Answer::kRefused)) {
    return std::nullopt;
  }
  return static_cast<Answer>(answer);
}

std::optional<MessageHeader> DecodeDataHeader(absl::Span<const uint8_t> bytes) {
  if (bytes.size() != kDataHeaderBytes) return std::nullopt;
  Reader reader(bytes.data());
  MessageHeader header;
  header.epoch = reader.Get<uint32_t>();
  header.kind = reader.Get<uint32_t>();
  header.step = reader.Get<int64_t>();
  header.id = reader.Get<int32_t>();
  return header;
}

bool SameToken(const PeerToken& a, const PeerToken& b) {
  const auto text = [](const PeerToken& token) {
    return std::string_view(reinterpret_cast<const char*>(token.data()), token.size());
  };
  return EqualSecrets(text(a), text(b));
}

}  // namespace weft
