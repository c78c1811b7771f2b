// Seeded random damage to messages of every kind, and the fuzz targets' corpora, in the ordinary
// test run.
#include <filesystem>

#include "common/base/absl_view.h"
#include "common/base/random.h"
#include "rpc_backend/protocol/clean_text.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_seed.h"
#include "tests/support/wire_targets.h"

namespace weft {
namespace {

// A refusal blames the message, in one line that can be shown.
void CheckRefusal(const absl::Status& status) {
  if (status.ok()) return;
  EXPECT_TRUE(status.code() == absl::StatusCode::kInvalidArgument ||
              status.code() == absl::StatusCode::kResourceExhausted ||
              status.code() == absl::StatusCode::kDataLoss)
      << status;
  EXPECT_FALSE(status.message().empty());
  EXPECT_LT(status.message().size(), 1000u) << status;
  EXPECT_TRUE(IsCleanText(StdView(status.message()))) << status;
}

TEST(HostileMessages, DamagedMessages_AreDecodedOrRefusedCleanly) {
  Random random(TestSeed(4711));
  for (const WireTarget& target : WireTargets()) {
    const auto seeds = target.seeds();
    const auto pick = [&] { return seeds[random.Between(0, seeds.size() - 1)].second; };
    const auto rounds = static_cast<int64_t>(TestCount(6000));
    int64_t accepted = 0;
    for (int64_t round = 0; round < rounds; ++round) {
      std::string bytes = pick();
      const int64_t count = random.Between(1, 4);
      for (int64_t i = 0; i < count; ++i) Damage(random, pick(), bytes);
      // On the heap and without spare bytes, so that the address sanitizer sees each read beyond.
      const std::vector<char> copy(bytes.begin(), bytes.end());
      const absl::Status status = target.run({copy.data(), copy.size()});
      CheckRefusal(status);
      accepted += status.ok() ? 1 : 0;
    }
    // Damage is mostly refused. (A digest file ends with a digest of itself.)
    EXPECT_LT(accepted, rounds) << target.name;
    const bool sealed = target.name == "weight_digests";
    EXPECT_TRUE(sealed || accepted > 0) << target.name;
  }
}

TEST(HostileMessages, Seeds_AreAccepted) {
  for (const WireTarget& target : WireTargets()) {
    for (const auto& [name, bytes] : target.seeds()) {
      if (name.starts_with("every_")) continue;  // decodes, but is not legal
      EXPECT_OK(target.run(bytes)) << target.name << " " << name;
    }
  }
}

TEST(HostileMessages, EveryPrefix_IsDecodedOrRefusedCleanly) {
  for (const WireTarget& target : WireTargets()) {
    for (const auto& [name, bytes] : target.seeds()) {
      for (size_t size = 0; size < std::min<size_t>(bytes.size(), 1000); ++size) {
        const std::vector<char> copy(bytes.begin(), bytes.begin() + static_cast<long>(size));
        CheckRefusal(target.run({copy.data(), copy.size()}));
      }
    }
  }
}

TEST(HostileMessages, Corpus_IsDecodedOrRefusedCleanly) {
  const std::filesystem::path corpus =
      std::filesystem::path(std::getenv("WEFT_SOURCE_DIR")) / "tests/fuzz/corpus";
  for (const WireTarget& target : WireTargets()) {
    int count = 0;
    for (const auto& file : std::filesystem::directory_iterator(corpus / target.name)) {
      CheckRefusal(target.run(FileText(file.path())));
      ++count;
    }
    EXPECT_GT(count, 0) << target.name;
  }
}

}  // namespace
}  // namespace weft
