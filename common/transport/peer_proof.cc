#include "common/transport/peer_proof.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/equal_secrets.h"
#include "common/base/status_macros.h"
#include "common/base/system_random.h"

namespace weft {
namespace {

// Of the same length, so that what follows stands at the same place.
constexpr std::string_view kConnectorLabel = "weft peer proof 2 connector";
constexpr std::string_view kListenerLabel = "weft peer proof 2 listener ";

template <typename T>
void AppendNumber(std::string& text, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) {
    text.push_back(static_cast<char>(static_cast<uint64_t>(value) >> (8 * i)));
  }
}

// Every field has a fixed length: no two handshakes give the same bytes.
std::string Text(PeerSide side, const PeerHandshake& handshake) {
  std::string text(side == PeerSide::kConnector ? kConnectorLabel : kListenerLabel);
  AppendNumber(text, handshake.session);
  AppendNumber(text, handshake.connector);
  AppendNumber(text, handshake.listener);
  text.append(ViewOf(handshake.token));
  text.append(ViewOf(handshake.connector_nonce));
  text.append(ViewOf(handshake.listener_nonce));
  text.append(ViewOf(handshake.connector_address));
  text.append(ViewOf(handshake.listener_address));
  return text;
}

}  // namespace

SessionKey::~SessionKey() { OPENSSL_cleanse(bytes_.data(), bytes_.size()); }

absl::StatusOr<SessionKey> SessionKey::New() {
  SessionKey key;
  RETURN_IF_ERROR(FillWithSystemRandom(absl::MakeSpan(key.bytes_)));
  return key;
}

absl::StatusOr<SessionKey> SessionKey::FromBytes(std::string_view bytes) {
  if (bytes.size() != kBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a session's key has ", kBytes, " bytes, not ", bytes.size()));
  }
  SessionKey key;
  bytes.copy(reinterpret_cast<char*>(key.bytes_.data()), kBytes);
  return key;
}

bool SessionKey::Equals(const SessionKey& other) const {
  return EqualSecrets(bytes(), other.bytes());
}

absl::StatusOr<PeerToken> NewPeerToken() {
  PeerToken token = {};
  RETURN_IF_ERROR(FillWithSystemRandom(absl::MakeSpan(token)));
  return token;
}

absl::StatusOr<PeerNonce> NewPeerNonce() {
  PeerNonce nonce = {};
  RETURN_IF_ERROR(FillWithSystemRandom(absl::MakeSpan(nonce)));
  return nonce;
}

AddressDigest DigestOfAddress(std::string_view port_address) {
  AddressDigest digest = {};
  SHA256(reinterpret_cast<const unsigned char*>(port_address.data()), port_address.size(),
         digest.data());
  return digest;
}

absl::StatusOr<PeerMac> ProveSide(const SessionKey& key, PeerSide side,
                                  const PeerHandshake& handshake) {
  std::string text = Text(side, handshake);
  PeerMac mac = {};
  unsigned int bytes = 0;
  const unsigned char* made =
      HMAC(EVP_sha256(), key.bytes().data(), static_cast<int>(key.bytes().size()),
           reinterpret_cast<const unsigned char*>(text.data()), text.size(), mac.data(), &bytes);
  OPENSSL_cleanse(text.data(), text.size());
  if (made == nullptr || bytes != mac.size()) return absl::InternalError("no proof can be made");
  return mac;
}

bool IsProofOf(const SessionKey& key, PeerSide side, const PeerHandshake& handshake,
               absl::Span<const uint8_t> proof) {
  const absl::StatusOr<PeerMac> wanted = ProveSide(key, side, handshake);
  if (!wanted.ok()) return false;
  const std::string_view given(reinterpret_cast<const char*>(proof.data()), proof.size());
  return EqualSecrets(ViewOf(*wanted), given);
}

}  // namespace weft
