#include "common/base/equal_secrets.h"

#include <string>

#include "gtest/gtest.h"

namespace weft {
namespace {

TEST(EqualSecrets, AnyByteAndAnyLengthCounts) {
  EXPECT_TRUE(EqualSecrets("", ""));
  const std::string secret = {'a', '\0', '\xff', 'z'};
  EXPECT_TRUE(EqualSecrets(secret, secret));
  for (size_t i = 0; i < secret.size(); ++i) {
    std::string other = secret;
    other[i] = static_cast<char>(other[i] ^ '\x80');
    EXPECT_FALSE(EqualSecrets(secret, other)) << i;
    EXPECT_FALSE(EqualSecrets(secret, secret.substr(0, i))) << i;
    EXPECT_FALSE(EqualSecrets(secret.substr(0, i), secret)) << i;
  }
  EXPECT_FALSE(EqualSecrets(secret, secret + '\0'));
  EXPECT_FALSE(EqualSecrets(secret + '\0', secret));
}

}  // namespace
}  // namespace weft
