#include "rpc_backend/protocol/content_digest.h"

#include "proto/worker.pb.h"
#include "tests/support/status_matchers.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

// Each single wrong bit of the bytes or of the digest is found.
TEST(ContentDigest, AnyWrongBit_IsDataLoss) {
  const std::string bytes = "a program";
  const std::string digest = ContentDigest(bytes);
  EXPECT_OK(CheckContent("the program", bytes, digest));
  const std::string sent = bytes + digest;
  for (size_t bit = 0; bit < 8 * sent.size(); ++bit) {
    std::string came = sent;
    came[bit / 8] = static_cast<char>(came[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_THAT(
        CheckContent("the program", came.substr(0, bytes.size()), came.substr(bytes.size())),
        StatusIs(absl::StatusCode::kDataLoss, HasSubstr("the program was changed on its way")));
  }
}

TEST(ContentDigest, SenderWithoutDigests_IsBelieved) {
  EXPECT_OK(CheckContent("the program", "a program", ""));
  EXPECT_OK(CheckContent("the program", "", ContentDigest("")));
  EXPECT_THAT(CheckContent("the program", "", ContentDigest("").substr(0, 31)),
              StatusIs(absl::StatusCode::kDataLoss));
}

TEST(ContentDigest, Bindings_EachNumberCounts) {
  proto::InstantiateRequest request;
  for (int i = 0; i < 3; ++i) {
    proto::Binding& binding = *request.add_bindings();
    binding.set_kind(i % 2);
    binding.set_id(i);
    binding.set_buffer(10 + i);
    binding.set_offset(int64_t{4096} * i);
  }
  request.set_sha256(ContentDigest(request));
  EXPECT_OK(CheckContent(request));
  for (int field = 0; field < 4; ++field) {
    proto::InstantiateRequest changed = request;
    proto::Binding& binding = *changed.mutable_bindings(1);
    if (field == 0) binding.set_kind(binding.kind() ^ 1);
    if (field == 1) binding.set_id(binding.id() + 1);
    if (field == 2) binding.set_buffer(binding.buffer() ^ 4);
    if (field == 3) binding.set_offset(binding.offset() + 32);
    EXPECT_THAT(CheckContent(changed), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("bindings")))
        << field;
  }
  proto::InstantiateRequest fewer = request;
  fewer.mutable_bindings()->RemoveLast();
  EXPECT_THAT(CheckContent(fewer), StatusIs(absl::StatusCode::kDataLoss));
}

}  // namespace
}  // namespace weft
