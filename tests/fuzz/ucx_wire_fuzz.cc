// What arrives at a UCX port before its sender is known: hellos, challenges, proofs, refusals,
// headers of messages, and the address texts that others hand out. The first byte chooses.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/base/check.h"
#include "common/transport/ucx/port_address.h"
#include "common/transport/ucx/ucx_wire.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const absl::Span<const uint8_t> bytes(data + 1, size - 1);
  switch (data[0] % 6) {
    case 0:
      // Every hello that is one says the same when it is written again.
      if (const auto hello = weft::DecodeHello(bytes); hello.has_value()) {
        WEFT_CHECK(absl::MakeConstSpan(weft::EncodeHello(*hello)) == bytes);
      }
      break;
    case 1:
      if (const auto refusal = weft::DecodeRefusal(bytes); refusal.has_value()) {
        WEFT_CHECK(absl::MakeConstSpan(weft::EncodeRefusal(*refusal)) == bytes);
        WEFT_CHECK(!weft::RefusalText(*refusal).empty());
      }
      break;
    case 2:
      if (const auto header = weft::DecodeDataHeader(bytes); header.has_value()) {
        WEFT_CHECK(weft::DecodeDataHeader(weft::EncodeDataHeader(*header)) == header);
      }
      break;
    case 3:
      if (const auto challenge = weft::DecodeChallenge(bytes); challenge.has_value()) {
        WEFT_CHECK(absl::MakeConstSpan(weft::EncodeChallenge(*challenge)) == bytes);
      }
      break;
    case 4:
      if (const auto proof = weft::DecodeProof(bytes); proof.has_value()) {
        WEFT_CHECK(absl::MakeConstSpan(weft::EncodeProof(*proof)) == bytes);
      }
      break;
    default: {
      const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      if (const auto address = weft::ParsePortAddress(text); address.ok()) {
        WEFT_CHECK(weft::ParsePortAddress(weft::PortAddressText(*address)).ok());
      }
      break;
    }
  }
  return 0;
}
