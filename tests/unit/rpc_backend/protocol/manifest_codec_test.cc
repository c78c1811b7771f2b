#include "rpc_backend/protocol/manifest_codec.h"

#include "proto/weights.pb.h"
#include "tests/support/status_matchers.h"
#include "tests/support/wire_samples.h"

namespace weft {
namespace {

using ::testing::HasSubstr;
constexpr auto kBad = absl::StatusCode::kInvalidArgument;

void CheckRefused(const std::function<void(LoadManifest&)>& change, const std::string& why,
                  const WireLimits& limits = {}) {
  LoadManifest manifest = SampleManifest();
  change(manifest);
  EXPECT_THAT(DecodeLoadManifest(EncodeLoadManifest(manifest), 2, limits),
              StatusIs(kBad, HasSubstr(why)));
}

TEST(ManifestCodec, Manifest_ComesBackEqual) {
  ASSERT_OK_AND_ASSIGN(const LoadManifest decoded,
                       DecodeLoadManifest(EncodeLoadManifest(SampleManifest()), 2));
  EXPECT_EQ(decoded, SampleManifest());
  ASSERT_OK_AND_ASSIGN(const LoadManifest empty,
                       DecodeLoadManifest(EncodeLoadManifest(LoadManifest()), 0));
  EXPECT_EQ(empty, LoadManifest());
}

TEST(ManifestCodec, WrongWeights_AreRefusedByName) {
  using M = LoadManifest;
  const std::string first = "weight 4 'blk.0.attn_q.weight': ";
  CheckRefused([](M& m) { m.weights[0].device = 2; }, first + "field 'device' = 2");
  CheckRefused([](M& m) { m.weights[0].bytes = 3071; }, first + "field 'bytes' = 3071");
  CheckRefused([](M& m) { m.weights[0].slices[1].file = 2; }, first + "slice 1: field 'file' = 2");
  CheckRefused([](M& m) { m.weights[0].slices[0].offset = (1 << 20) - 2047; },
               first + "slice 0: field 'offset'");
  CheckRefused([](M& m) { m.weights[1].weight = 4; }, "field 'weight' = 4: is used twice");
  CheckRefused([](M& m) { m.weights[0].slices[1].bytes = -1; },
               "LoadManifest.weights[0].slices[1].bytes: -1");
  CheckRefused([](M& m) { m.weights[0].weight = -1; }, "LoadManifest.weights[0].weight: -1");
}

TEST(ManifestCodec, WrongFiles_AreRefusedByField) {
  proto::LoadManifest message;
  ASSERT_TRUE(message.ParseFromString(EncodeLoadManifest(SampleManifest())));
  message.mutable_files(1)->set_identity("short");
  EXPECT_THAT(DecodeLoadManifest(message.SerializeAsString(), 2),
              StatusIs(kBad, HasSubstr("LoadManifest.files[1].identity: 5 bytes, want 32")));
}

TEST(ManifestCodec, TooManySlicesInAll_AreRefused) {
  WireLimits limits;
  limits.slices = 2;
  CheckRefused([](LoadManifest&) {}, "more than 2 in all", limits);
  limits.slices = 1;
  CheckRefused([](LoadManifest&) {}, "WeightEntry.slices: more than 1", limits);
}

}  // namespace
}  // namespace weft
