#include "coordinator/serving/admission_queue.h"

#include "common/gguf/gguf_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/golden_model.h"
#include "tests/support/status_matchers.h"

namespace weft {
namespace {

using testing::ElementsAre;

class AdmissionQueueTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(
        const std::unique_ptr<GgufFile> file,
        GgufFile::Open(TestDataFolder() + "/models/shakespeare/shakespeare-q4_0.gguf"));
    ASSERT_OK_AND_ASSIGN(tokenizer_, Tokenizer::Create(file->metadata()));
  }

  // Known by its number of tokens.
  bool Add(AdmissionQueue& queue, const std::string& client, int64_t tokens) {
    GenerationRequest request;
    request.client = client;
    request.prompt.assign(tokens, 1);
    auto sequence = std::make_unique<Sequence>(
        std::move(request), std::make_shared<GenerationStream>(), *tokenizer_, clock_);
    return queue.Add(sequence);
  }

  static std::vector<size_t> TakeAll(AdmissionQueue& queue) {
    std::vector<size_t> taken;
    while (queue.Next() != nullptr) taken.push_back(queue.Take()->tokens().size());
    return taken;
  }

  SystemClock clock_;
  std::unique_ptr<Tokenizer> tokenizer_;
};

TEST_F(AdmissionQueueTest, Clients_TakeTurns) {
  AdmissionQueue queue(10);
  for (const int64_t tokens : {1, 2, 3}) EXPECT_TRUE(Add(queue, "a", tokens));
  EXPECT_TRUE(Add(queue, "b", 11));
  EXPECT_TRUE(Add(queue, "c", 21));
  EXPECT_TRUE(Add(queue, "b", 12));
  EXPECT_EQ(queue.size(), 6);
  EXPECT_THAT(TakeAll(queue), ElementsAre(1, 11, 21, 2, 12, 3));
  EXPECT_EQ(queue.size(), 0);
}

TEST_F(AdmissionQueueTest, TooMany_AreRefused) {
  AdmissionQueue queue(2);
  EXPECT_TRUE(Add(queue, "a", 1));
  EXPECT_TRUE(Add(queue, "b", 2));
  EXPECT_FALSE(Add(queue, "c", 3));
  EXPECT_THAT(TakeAll(queue), ElementsAre(1, 2));
  EXPECT_TRUE(Add(queue, "c", 3));
}

TEST_F(AdmissionQueueTest, TakeIf_LeavesTheOthersInOrder) {
  AdmissionQueue queue(10);
  for (const int64_t tokens : {1, 2, 3}) EXPECT_TRUE(Add(queue, "a", tokens));
  EXPECT_TRUE(Add(queue, "b", 4));
  const auto even = [](const Sequence& sequence) { return sequence.tokens().size() % 2 == 0; };
  EXPECT_EQ(queue.TakeIf(even).size(), 2);
  EXPECT_EQ(queue.size(), 2);
  EXPECT_TRUE(Add(queue, "b", 5));
  EXPECT_THAT(TakeAll(queue), ElementsAre(1, 5, 3));
}

}  // namespace
}  // namespace weft
