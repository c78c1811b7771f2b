#include "common/digest/sha256.h"

#include <openssl/evp.h>

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace weft {
namespace {

constexpr std::string_view kDigits = "0123456789abcdef";

}  // namespace

std::string Sha256Digest::Hex() const {
  std::string text;
  text.reserve(2 * kBytes);
  for (const uint8_t byte : bytes) {
    text.push_back(kDigits[byte >> 4]);
    text.push_back(kDigits[byte & 15]);
  }
  return text;
}

std::optional<Sha256Digest> Sha256Digest::FromHex(std::string_view text) {
  if (text.size() != 2 * kBytes) return std::nullopt;
  Sha256Digest digest;
  for (size_t i = 0; i < kBytes; ++i) {
    const size_t high = kDigits.find(text[2 * i]);
    const size_t low = kDigits.find(text[2 * i + 1]);
    if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
    digest.bytes[i] = static_cast<uint8_t>(high << 4 | low);
  }
  return digest;
}

std::optional<Sha256Digest> Sha256Digest::FromRaw(std::string_view raw) {
  if (raw.size() != kBytes) return std::nullopt;
  Sha256Digest digest;
  std::copy(raw.begin(), raw.end(), digest.bytes.begin());
  return digest;
}

// The calls below fail only where memory is exhausted or the library lacks SHA-256.
struct Sha256::State {
  State() : context(EVP_MD_CTX_new()) {
    WEFT_CHECK(context != nullptr);
    Start();
  }
  ~State() { EVP_MD_CTX_free(context); }
  void Start() const { WEFT_CHECK(EVP_DigestInit_ex(context, EVP_sha256(), nullptr) == 1); }

  EVP_MD_CTX* context;
};

Sha256::Sha256() : state_(std::make_unique<State>()) {}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::Update(absl::Span<const uint8_t> bytes) {
  WEFT_CHECK(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) == 1);
}

void Sha256::Update(std::string_view text) {
  WEFT_CHECK(EVP_DigestUpdate(state_->context, text.data(), text.size()) == 1);
}

void Sha256::UpdateInt(int64_t value) {
  std::array<uint8_t, 8> bytes = {};
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<uint8_t>(static_cast<uint64_t>(value) >> (8 * i));
  }
  Update(absl::MakeConstSpan(bytes.data(), bytes.size()));
}

Sha256Digest Sha256::Finish() {
  Sha256Digest digest;
  WEFT_CHECK(EVP_DigestFinal_ex(state_->context, digest.bytes.data(), nullptr) == 1);
  state_->Start();
  return digest;
}

Sha256Digest Sha256::Of(absl::Span<const uint8_t> bytes) {
  Sha256 hasher;
  hasher.Update(bytes);
  return hasher.Finish();
}

}  // namespace weft
