#include "common/transport/ucx/ucx_wire.h"

#include <algorithm>

namespace weft {
namespace {

constexpr uint32_t kMagic = 0x74666577;  // "weft"
constexpr uint32_t kVersion = 2;

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
  template <size_t N>
  void Put(const std::array<uint8_t, N>& bytes) {
    place_ = std::copy(bytes.begin(), bytes.end(), place_);
  }
  void PutVersion() {
    Put(kMagic);
    Put(kVersion);
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
  template <size_t N>
  void Get(std::array<uint8_t, N>& bytes) {
    std::copy(place_, place_ + N, bytes.begin());
    place_ += N;
  }
  bool SameVersion() { return Get<uint32_t>() == kMagic && Get<uint32_t>() == kVersion; }

 private:
  const uint8_t* place_;
};

}  // namespace

std::string_view RefusalText(Refusal refusal) {
  switch (refusal) {
    case Refusal::kNotExpected:
      return "no such connection is expected";
    case Refusal::kNoHello:
      return "something else came before the proof of the session's key";
    case Refusal::kWrongProof:
      return "the proof of the session's key is wrong";
    case Refusal::kTooLate:
      return "no proof of the session's key came in time";
    case Refusal::kTooMany:
      return "too many connections that have not proved the session's key";
    case Refusal::kNoMemory:
      return "no memory";
  }
  return "";
}

std::array<uint8_t, kHelloBytes> EncodeHello(const Hello& hello) {
  std::array<uint8_t, kHelloBytes> bytes = {};
  Writer writer(bytes.data());
  writer.PutVersion();
  writer.Put(hello.session);
  writer.Put(hello.from);
  writer.Put(hello.to);
  writer.Put(hello.nonce);
  writer.Put(hello.address);
  return bytes;
}

std::array<uint8_t, kChallengeBytes> EncodeChallenge(const Challenge& challenge) {
  std::array<uint8_t, kChallengeBytes> bytes = {};
  Writer writer(bytes.data());
  writer.PutVersion();
  writer.Put(challenge.nonce);
  writer.Put(challenge.proof);
  return bytes;
}

std::array<uint8_t, kProofBytes> EncodeProof(const PeerMac& proof) {
  std::array<uint8_t, kProofBytes> bytes = {};
  Writer writer(bytes.data());
  writer.PutVersion();
  writer.Put(proof);
  return bytes;
}

std::array<uint8_t, kRefusalBytes> EncodeRefusal(Refusal refusal) {
  std::array<uint8_t, kRefusalBytes> bytes = {};
  Writer writer(bytes.data());
  writer.PutVersion();
  writer.Put(static_cast<uint32_t>(refusal));
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
  if (!reader.SameVersion()) return std::nullopt;
  Hello hello;
  hello.session = reader.Get<uint64_t>();
  hello.from = reader.Get<int32_t>();
  hello.to = reader.Get<int32_t>();
  reader.Get(hello.nonce);
  reader.Get(hello.address);
  return hello;
}

std::optional<Challenge> DecodeChallenge(absl::Span<const uint8_t> bytes) {
  if (bytes.size() != kChallengeBytes) return std::nullopt;
  Reader reader(bytes.data());
  if (!reader.SameVersion()) return std::nullopt;
  Challenge challenge;
  reader.Get(challenge.nonce);
  reader.Get(challenge.proof);
  return challenge;
}

std::optional<PeerMac> DecodeProof(absl::Span<const uint8_t> bytes) {
  if (bytes.size() != kProofBytes) return std::nullopt;
  Reader reader(bytes.data());
  if (!reader.SameVersion()) return std::nullopt;
  PeerMac proof = {};
  reader.Get(proof);
  return proof;
}

std::optional<Refusal> DecodeRefusal(absl::Span<const uint8_t> bytes) {
  if (bytes.size() != kRefusalBytes) return std::nullopt;
  Reader reader(bytes.data());
  if (!reader.SameVersion()) return std::nullopt;
  const auto refusal = reader.Get<uint32_t>();
  if (refusal < static_cast<uint32_t>(Refusal::kNotExpected) ||
      refusal > static_cast<uint32_t>(Refusal::kNoMemory)) {
    return std::nullopt;
  }
  return static_cast<Refusal>(refusal);
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

}  // namespace weft
