// The first message of a TLS connection, read only as far as it says which versions the client
// speaks: so a server can refuse with a reason what is no TLS, or an old one, before it spends
// anything on it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weft {

// Of a ClientHello with its record: more is no client of ours.
inline constexpr size_t kMaxClientHelloBytes = size_t{16} << 10;

enum class FirstBytes {
  kIncomplete,  // more must arrive before anything can be said
  kTls13,       // a ClientHello that offers TLS 1.3
  kOldTls,      // one that does not
  kHttp2,       // gRPC without TLS
  kOther,       // anything else
};

// What a connection's first bytes are. Never kIncomplete for kMaxClientHelloBytes or more. Source:
// RFC 8446, sections 4.1.2, 4.2.1 and 5.1; RFC 9113, section 3.4.
FirstBytes ReadFirstBytes(std::string_view bytes);

// A fatal alert protocol_version, as a server sends it that speaks TLS 1.3 only.
std::string ProtocolVersionAlert();

}  // namespace weft
