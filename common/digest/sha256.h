// SHA-256: what names bytes wherever two processes must mean the same ones.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/types/span.h"

namespace weft {

// 32 bytes, in the order in which the standard writes them.
struct Sha256Digest {
  static constexpr size_t kBytes = 32;
  std::array<uint8_t, kBytes> bytes = {};

  // 64 lower-case hexadecimal digits.
  std::string Hex() const;
  // The 32 bytes as they travel in messages.
  std::string Raw() const { return {reinterpret_cast<const char*>(bytes.data()), kBytes}; }

  // Nothing unless `text` is exactly what Hex or Raw gives.
  static std::optional<Sha256Digest> FromHex(std::string_view text);
  static std::optional<Sha256Digest> FromRaw(std::string_view raw);

  friend auto operator<=>(const Sha256Digest&, const Sha256Digest&) = default;
};

// Digests bytes as they come. One thread at a time.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void Update(absl::Span<const uint8_t> bytes);
  void Update(std::string_view text);
  // Eight bytes, lowest first.
  void UpdateInt(int64_t value);
  // The digest of all bytes so far; then starts anew.
  Sha256Digest Finish();

  static Sha256Digest Of(absl::Span<const uint8_t> bytes);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weft
