#include "common/tls/client_hello.h"

#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <string>

#include "common/base/random.h"
#include "common/tls/openssl_objects.h"
#include "tests/support/test_seed.h"

namespace weft {
namespace {

// What OpenSSL's client says first when it speaks no newer version than that.
std::string HelloOf(int newest_version) {
  const OpenSslPointer<SSL_CTX> context(SSL_CTX_new(TLS_client_method()));
  SSL_CTX_set_max_proto_version(context.get(), newest_version);
  const OpenSslPointer<SSL> connection(SSL_new(context.get()));
  BIO* const in = BIO_new(BIO_s_mem());
  BIO* const out = BIO_new(BIO_s_mem());
  SSL_set_bio(connection.get(), in, out);  // owns both
  SSL_set_tlsext_host_name(connection.get(), "gpu1");
  EXPECT_LT(SSL_connect(connection.get()), 0);
  char* data = nullptr;
  const auto size = static_cast<size_t>(BIO_get_mem_data(out, &data));
  return {data, size};
}

TEST(ClientHelloTest, Versions_AreToldApart) {
  EXPECT_EQ(ReadFirstBytes(HelloOf(TLS1_3_VERSION)), FirstBytes::kTls13);
  EXPECT_EQ(ReadFirstBytes(HelloOf(TLS1_2_VERSION)), FirstBytes::kOldTls);
}

TEST(ClientHelloTest, OtherProtocols_AreNamed) {
  EXPECT_EQ(ReadFirstBytes("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0"), FirstBytes::kHttp2);
  EXPECT_EQ(ReadFirstBytes("PRI * HT"), FirstBytes::kIncomplete);
  EXPECT_EQ(ReadFirstBytes("GET / HTTP/1.1\r\n"), FirstBytes::kOther);
  EXPECT_EQ(ReadFirstBytes("PRI * HTTP/3"), FirstBytes::kOther);
  EXPECT_EQ(ReadFirstBytes(""), FirstBytes::kIncomplete);
}

TEST(ClientHelloTest, EveryPrefix_IsIncomplete) {
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    const std::string hello = HelloOf(version);
    for (size_t size = 0; size < hello.size(); ++size) {
      ASSERT_EQ(ReadFirstBytes({hello.data(), size}), FirstBytes::kIncomplete) << size;
    }
  }
}

TEST(ClientHelloTest, WhatIsTooLong_IsRefusedBeforeItArrives) {
  const std::string header = {22, 3, 1, 0x40, 0x00};  // 16 KiB and the header
  EXPECT_EQ(ReadFirstBytes(header), FirstBytes::kOther);
}

// Whatever a stranger sends, it is read within bounds (the sanitizers look) and decided at last.
TEST(ClientHelloTest, RandomChanges_AreDecidedWithinTheLimit) {
  const uint64_t seed = TestSeed(20261130);
  SCOPED_TRACE(seed);
  Random random(seed);
  const std::string hello = HelloOf(TLS1_3_VERSION);
  int others = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string changed = hello;
    for (int j = 0; j < 1 + i % 4; ++j)
      changed[random.Next() % changed.size()] = static_cast<char>(random.Next());
    // In memory of just that size.
    const std::string exact(changed.data(), changed.size());
    if (ReadFirstBytes(exact) == FirstBytes::kOther) ++others;
    changed.resize(kMaxClientHelloBytes, '\0');
    EXPECT_NE(ReadFirstBytes(changed), FirstBytes::kIncomplete);
  }
  EXPECT_GT(others, 0);
}

}  // namespace
}  // namespace weft
