#include "coordinator/serving/inference_loop.h"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/random.h"
#include "common/base/status_macros.h"
#include "common/gguf/gguf_file.h"
#include "coordinator/engine/generator.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/demo_session.h"
#include "tests/support/golden_model.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_seed.h"

namespace weft {
namespace {

using testing::HasSubstr;

constexpr auto kForever = Clock::TimePoint::max();

class InferenceLoopTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(
        file_, GgufFile::Open(TestDataFolder() + "/models/shakespeare/shakespeare-q4_0.gguf"));
    ASSERT_OK_AND_ASSIGN(model_, Model::Create(*file_));
    ASSERT_OK_AND_ASSIGN(tokenizer_, Tokenizer::Create(file_->metadata()));
  }

  std::unique_ptr<InferenceLoop> Start(const DemoSessionOptions& rig,
                                       const ServingOptions& serving = {}) {
    auto loop = InferenceLoop::Start(
        [this, rig]() -> absl::StatusOr<std::unique_ptr<ServingSession>> {
          if (++opened_ <= failing_opens_) return absl::UnavailableError("no worker there");
          return DemoSession::Open(*model_, rig, clock_);
        },
        *tokenizer_, serving, clock_, logger_);
    EXPECT_OK(loop.status());
    return loop.ok() ? *std::move(loop) : nullptr;
  }

  std::vector<int32_t> Tokens(const std::string& text) {
    return tokenizer_->Encode(text, EncodeOptions{}).value();
  }

  GenerationRequest Request(const std::string& prompt, int64_t count) {
    GenerationRequest request;
    request.prompt = Tokens(prompt);
    request.max_tokens = count;
    request.sampler.temperature = 0;
    request.ignore_end = true;
    return request;
  }

  // What one sequence alone gives.
  std::string Alone(const std::string& prompt, int64_t count, const SamplerOptions& options,
                    int fakes = 0) {
    DemoSessionOptions rig;
    rig.fakes = fakes;
    auto session = DemoSession::Open(*model_, rig, clock_).value();
    Sampler sampler(options);
    const std::vector<int32_t> tokens = Tokens(prompt);
    for (const int32_t token : tokens) sampler.Accept(token);
    GenerateCallbacks callbacks;
    callbacks.choose = [&](absl::Span<const float> logits) { return sampler.Sample(logits); };
    std::string text;
    callbacks.emit = [&](int32_t token) {
      sampler.Accept(token);
      text += tokenizer_->Piece(token, false);
      return true;
    };
    EXPECT_OK(Generate(session->runner(), clock_, tokens, count, callbacks).status());
    return text;
  }

  static absl::StatusOr<std::string> ReadAll(GenerationStream& stream) {
    std::string text;
    while (true) {
      ASSIGN_OR_RETURN(const std::optional<GenerationPiece> piece, stream.Next(kForever));
      if (!piece) return text;
      text += piece->text;
    }
  }

  // Or what went wrong.
  static std::string TextOf(GenerationStream& stream) {
    const absl::StatusOr<std::string> text = ReadAll(stream);
    return text.ok() ? *text : text.status().ToString();
  }

  SystemClock clock_;
  Logger logger_{"test", LogLevel::kError};
  std::unique_ptr<GgufFile> file_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::atomic<int> opened_ = 0;
  std::atomic<int> failing_opens_ = 0;
};

const char* const kPrompts[] = {"ROMEO:",
                                "JULIET:\nO",
                                "First Citizen:\nBefore we proceed any further, hear me speak.\n",
                                "KING RICHARD III:\nNow is the winter",
                                "A",
                                "The quality of mercy is not strained,",
                                "To be, or not to be",
                                "MENENIUS:\nWhat work's, my countrymen, in hand?"};

// Sequences come and go; each gets what it would get alone.
TEST_F(InferenceLoopTest, ManyAtOnce_EqualEachAlone) {
  for (const int fakes : {0, 2}) {
    DemoSessionOptions rig;
    rig.fakes = fakes;
    const auto loop = Start(rig);
    ASSERT_NE(loop, nullptr);
    std::vector<GenerationRequest> requests;
    std::vector<std::string> want;
    for (size_t i = 0; i < std::size(kPrompts); ++i) {
      GenerationRequest& request =
          requests.emplace_back(Request(kPrompts[i], 8 + static_cast<int64_t>(3 * i)));
      if (i % 2 == 1) {
        request.sampler.temperature = 0.8f;
        request.sampler.seed = i;
      }
      want.push_back(Alone(kPrompts[i], request.max_tokens, request.sampler, fakes));
    }
    std::vector<std::shared_ptr<GenerationStream>> streams;
    for (GenerationRequest& request : requests) {
      ASSERT_OK_AND_ASSIGN(auto stream, loop->Submit(std::move(request)));
      streams.push_back(std::move(stream));
    }
    for (size_t i = 0; i < streams.size(); ++i) {
      SCOPED_TRACE(absl::StrCat(fakes, " fakes, prompt ", i));
      EXPECT_EQ(TextOf(*streams[i]), want[i]);
      const GenerationSummary summary = streams[i]->summary();
      EXPECT_EQ(summary.reason, FinishReason::kLength);
      EXPECT_EQ(summary.generated_tokens, 8 + static_cast<int64_t>(3 * i));
    }
    ASSERT_TRUE(loop->Drain(kForever));
    const ServingState state = loop->state();
    EXPECT_EQ(state.counters.finished, std::size(kPrompts));
    EXPECT_EQ(state.pages_used, 0);
    EXPECT_LT(state.counters.steps, state.counters.generated_tokens);  // they shared steps
  }
}

TEST_F(InferenceLoopTest, SamePrefix_IsReadOnce) {
  const auto loop = Start(DemoSessionOptions{});
  ASSERT_NE(loop, nullptr);
  const std::string prompt = "MENENIUS:\nWhat work's, my countrymen, in hand? where go you";
  std::vector<std::string> texts;
  for (int i = 0; i < 2; ++i) {
    ASSERT_OK_AND_ASSIGN(const auto stream, loop->Submit(Request(prompt, 10)));
    ASSERT_OK_AND_ASSIGN(texts.emplace_back(), ReadAll(*stream));
    const int64_t whole = (stream->summary().prompt_tokens - 1) / 16 * 16;
    ASSERT_GT(whole, 0);
    EXPECT_EQ(stream->summary().reused_tokens, i == 0 ? 0 : whole);
  }
  EXPECT_EQ(texts[0], texts[1]);
  ASSERT_TRUE(loop->Drain(kForever));
  EXPECT_GT(loop->state().pages_kept, 0);
}

// The cache holds less than what all want: some are set back and lose nothing.
TEST_F(InferenceLoopTest, FullCache_LosesNoText) {
  DemoSessionOptions rig;
  rig.cache_tokens = 96;
  const auto loop = Start(rig);
  ASSERT_NE(loop, nullptr);
  std::vector<std::shared_ptr<GenerationStream>> streams;
  for (int i = 0; i < 4; ++i) {
    ASSERT_OK_AND_ASSIGN(auto stream, loop->Submit(Request(kPrompts[i], 40)));
    streams.push_back(std::move(stream));
  }
  SamplerOptions greedy;
  greedy.temperature = 0;
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(TextOf(*streams[i]), Alone(kPrompts[i], 40, greedy));
  }
  ASSERT_TRUE(loop->Drain(kForever));
  EXPECT_GT(loop->state().counters.preempted, 0);
}

TEST_F(InferenceLoopTest, NoRoomLeft_EndsTheText) {
  DemoSessionOptions rig;
  rig.context = 32;
  const auto loop = Start(rig);
  ASSERT_NE(loop, nullptr);
  ASSERT_OK_AND_ASSIGN(const auto stream, loop->Submit(Request("ROMEO:", -1)));
  ASSERT_OK(ReadAll(*stream).status());
  EXPECT_EQ(stream->summary().reason, FinishReason::kContextFull);
  // The last token need not go through the model.
  EXPECT_EQ(stream->summary().prompt_tokens + stream->summary().generated_tokens, 33);
}

TEST_F(InferenceLoopTest, StopText_EndsTheText) {
  const auto loop = Start(DemoSessionOptions{});
  ASSERT_NE(loop, nullptr);
  SamplerOptions greedy;
  greedy.temperature = 0;
  const std::string whole = Alone("ROMEO:", 40, greedy);
  const std::string stop = whole.substr(10, 3);
  GenerationRequest request = Request("ROMEO:", 40);
  request.stop = {stop};
  ASSERT_OK_AND_ASSIGN(const auto stream, loop->Submit(std::move(request)));
  EXPECT_EQ(TextOf(*stream), whole.substr(0, whole.find(stop)));
  EXPECT_EQ(stream->summary().reason, FinishReason::kStopText);
}

// Candidates that do not tell, and more changed ids than steps have room for.
TEST_F(InferenceLoopTest, AllLogitsWhereNeeded_SameText) {
  DemoSessionOptions rig;
  rig.candidates = 1;
  const auto loop = Start(rig);
  ASSERT_NE(loop, nullptr);
  std::vector<std::shared_ptr<GenerationStream>> streams;
  std::vector<std::string> want;
  for (int i = 0; i < 4; ++i) {
    GenerationRequest request = Request(kPrompts[i], 12);
    request.sampler.temperature = 1;
    request.sampler.seed = static_cast<uint64_t>(i);
    if (i % 2 == 0) {
      request.sampler.repeat_penalty = 1.3f;
      request.sampler.penalty_window = -1;
    }
    want.push_back(Alone(kPrompts[i], 12, request.sampler));
    ASSERT_OK_AND_ASSIGN(auto stream, loop->Submit(std::move(request)));
    streams.push_back(std::move(stream));
  }
  for (int i = 0; i < 4; ++i) EXPECT_EQ(TextOf(*streams[i]), want[i]);
}

TEST_F(InferenceLoopTest, LogProbabilities_ComeWithTheText) {
  const auto loop = Start(DemoSessionOptions{});
  ASSERT_NE(loop, nullptr);
  GenerationRequest request = Request("ROMEO:", 6);
  request.log_probabilities = 3;
  ASSERT_OK_AND_ASSIGN(const auto stream, loop->Submit(std::move(request)));
  std::vector<LogProbabilities> tokens;
  while (true) {
    ASSERT_OK_AND_ASSIGN(const auto piece, stream->Next(kForever));
    if (!piece) break;
    tokens.insert(tokens.end(), piece->tokens.begin(), piece->tokens.end());
  }
  ASSERT_EQ(tokens.size(), 6);
  for (const LogProbabilities& token : tokens) {
    ASSERT_EQ(token.top.size(), 3);
    EXPECT_EQ(token.top[0].id, token.chosen.id);  // greedy
    EXPECT_FLOAT_EQ(token.top[0].log_probability, token.chosen.log_probability);
    EXPECT_LE(token.chosen.log_probability, 0);
    EXPECT_GE(token.top[0].log_probability, token.top[1].log_probability);
  }
}

TEST_F(InferenceLoopTest, Refused_NamesTheField) {
  DemoSessionOptions rig;
  ServingOptions serving;
  serving.most_waiting = 1;
  rig.sequences = 1;
  const auto loop = Start(rig, serving);
  ASSERT_NE(loop, nullptr);
  const auto submit = [&](GenerationRequest request) {
    return loop->Submit(std::move(request)).status();
  };
  GenerationRequest empty;
  EXPECT_THAT(submit(std::move(empty)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("prompt")));
  GenerationRequest foreign = Request("a", 1);
  foreign.prompt.push_back(1 << 20);
  EXPECT_THAT(submit(std::move(foreign)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("vocabulary")));
  GenerationRequest large = Request("a", 1);
  large.prompt.resize(200, 1);
  EXPECT_THAT(submit(std::move(large)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("context holds 96")));
  EXPECT_THAT(submit(Request("a", 0)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("max_tokens")));
}

TEST_F(InferenceLoopTest, TooManyWait_AreRefused) {
  DemoSessionOptions rig;
  ServingOptions serving;
  rig.sequences = 1;
  serving.most_waiting = 2;
  const auto loop = Start(rig, serving);
  ASSERT_NE(loop, nullptr);
  std::vector<std::shared_ptr<GenerationStream>> taken;
  int refused = 0;
  for (int i = 0; i < 20; ++i) {
    auto stream = loop->Submit(Request("ROMEO:", 80));
    if (stream.ok()) {
      taken.push_back(*std::move(stream));
    } else {
      EXPECT_THAT(stream.status(),
                  StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("wait")));
      ++refused;
    }
  }
  EXPECT_GT(refused, 0);
  EXPECT_EQ(loop->state().counters.refused, refused);
  for (const auto& stream : taken) EXPECT_OK(ReadAll(*stream).status());
}

TEST_F(InferenceLoopTest, ClientThatLeaves_GivesItsPagesBack) {
  const auto loop = Start(DemoSessionOptions{});
  ASSERT_NE(loop, nullptr);
  ASSERT_OK_AND_ASSIGN(const auto stays, loop->Submit(Request("JULIET:", 60)));
  ASSERT_OK_AND_ASSIGN(const auto leaves, loop->Submit(Request("ROMEO:", 80)));
  ASSERT_OK(leaves->Next(kForever).status());
  leaves->Cancel();
  absl::Status ended;
  while (ended.ok()) ended = leaves->Next(kForever).status();
  EXPECT_THAT(ended, StatusIs(absl::StatusCode::kCancelled, HasSubstr("left")));
  EXPECT_OK(ReadAll(*stays).status());
  ASSERT_TRUE(loop->Drain(kForever));
  EXPECT_EQ(loop->state().pages_used, 0);
  EXPECT_EQ(loop->state().counters.cancelled, 1);
}

TEST_F(InferenceLoopTest, Deadline_EndsTheRequest) {
  const auto loop = Start(DemoSessionOptions{});
  ASSERT_NE(loop, nullptr);
  GenerationRequest request = Request("ROMEO:", 80);
  request.deadline = clock_.Now();
  ASSERT_OK_AND_ASSIGN(const auto stream, loop->Submit(std::move(request)));
  EXPECT_THAT(ReadAll(*stream).status(),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("in time")));
}

TEST_F(InferenceLoopTest, Drain_FinishesWhatIsUnderWay) {
  const auto loop = Start(DemoSessionOptions{});
  ASSERT_NE(loop, nullptr);
  ASSERT_OK_AND_ASSIGN(const auto stream, loop->Submit(Request("ROMEO:", 30)));
  EXPECT_TRUE(loop->Drain(kForever));
  EXPECT_THAT(loop->Submit(Request("ROMEO:", 30)).status(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("shutting down")));
  EXPECT_OK(ReadAll(*stream).status());
}

TEST_F(InferenceLoopTest, EndOfTheLoop_EndsItsStreams) {
  std::shared_ptr<GenerationStream> stream;
  {
    const auto loop = Start(DemoSessionOptions{});
    ASSERT_NE(loop, nullptr);
    ASSERT_OK_AND_ASSIGN(stream, loop->Submit(Request("ROMEO:", 90)));
  }
  EXPECT_THAT(ReadAll(*stream).status(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("shutting down")));
  stream->Cancel();  // nobody is there any longer
}

// The session is lost and none opens again: the loop ends all the same, with or without requests.
TEST_F(InferenceLoopTest, EndOfTheLoop_WhileTheSessionIsLost) {
  for (const int requests : {0, 1}) {
    SCOPED_TRACE(absl::StrCat(requests, " requests"));
    std::atomic<bool> lost = false;
    DemoSessionOptions rig;
    rig.fakes = 2;
    rig.lost = [&] {
      return lost ? absl::UnavailableError("worker w1 is lost") : absl::OkStatus();
    };
    rig.before_node = [&](const Graph&, NodeId) { return rig.lost(); };
    const auto loop = Start(rig);
    ASSERT_NE(loop, nullptr);
    failing_opens_ = 1'000'000;
    std::shared_ptr<GenerationStream> stream;
    if (requests > 0) {
      ASSERT_OK_AND_ASSIGN(stream, loop->Submit(Request("ROMEO:", 90)));
    }
    lost = true;
    while (loop->state().counters.sessions_lost == 0) std::this_thread::yield();
    loop->Stop();
    if (stream != nullptr) {
      EXPECT_THAT(ReadAll(*stream).status(),
                  StatusIs(absl::StatusCode::kUnavailable, HasSubstr("shutting down")));
    }
    EXPECT_FALSE(loop->state().ready);
    failing_opens_ = 0;
  }
}

// A step that fails ends its own sequences and no others.
TEST_F(InferenceLoopTest, FailedStep_EndsItsSequences) {
  std::atomic<int64_t> nodes = 0;
  DemoSessionOptions rig;
  rig.fakes = 1;
  rig.before_node = [&](const Graph&, NodeId) -> absl::Status {
    if (++nodes != 3000) return absl::OkStatus();
    return absl::InternalError("smoke");
  };
  const auto loop = Start(rig);
  ASSERT_NE(loop, nullptr);
  int failed = 0;
  for (int i = 0; i < 12; ++i) {
    ASSERT_OK_AND_ASSIGN(const auto stream, loop->Submit(Request("ROMEO:", 10)));
    const absl::Status status = ReadAll(*stream).status();
    if (status.ok()) continue;
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInternal, HasSubstr("smoke")));
    ++failed;
  }
  EXPECT_EQ(failed, 1);
  EXPECT_EQ(loop->state().counters.sessions_lost, 0);
}

// A lost worker loses no request: they go on in the next session, and texts are what they were.
TEST_F(InferenceLoopTest, LostSession_LosesNoRequest) {
  std::atomic<int64_t> nodes = 0;
  std::atomic<int> losses = 0;
  DemoSessionOptions rig;
  ServingOptions serving;
  rig.fakes = 2;
  serving.first_retry = std::chrono::milliseconds(1);
  rig.before_node = [&](const Graph&, NodeId) -> absl::Status {
    if (++nodes % 1200 != 0 || losses >= 3) return absl::OkStatus();
    ++losses;
    failing_opens_ = opened_ + 2;  // and it takes a while until it is back
    return absl::UnavailableError("worker w1 is lost");
  };
  const auto loop = Start(rig, serving);
  ASSERT_NE(loop, nullptr);
  std::vector<std::shared_ptr<GenerationStream>> streams;
  for (const char* const prompt : kPrompts) {
    ASSERT_OK_AND_ASSIGN(auto stream, loop->Submit(Request(prompt, 30)));
    streams.push_back(std::move(stream));
  }
  SamplerOptions greedy;
  greedy.temperature = 0;
  for (size_t i = 0; i < streams.size(); ++i) {
    EXPECT_EQ(TextOf(*streams[i]), Alone(kPrompts[i], 30, greedy, 2));
  }
  EXPECT_EQ(losses, 3);
  ASSERT_TRUE(loop->Drain(kForever));
  const ServingState state = loop->state();
  EXPECT_EQ(state.counters.sessions_lost, 3);
  EXPECT_EQ(state.counters.sessions_opened, 4);
  EXPECT_TRUE(state.ready);
}

// Of texts among continuations, over one device and two, and through losses.
TEST_F(InferenceLoopTest, Embeddings_AreTheSameWhateverElseRuns) {
  std::vector<std::vector<float>> want;
  for (const int fakes : {0, 2}) {
    std::atomic<int64_t> nodes = 0;
    std::atomic<int> losses = 0;
    DemoSessionOptions rig;
    rig.fakes = fakes;
    rig.before_node = [&](const Graph&, NodeId) -> absl::Status {
      if (++nodes % 900 != 0 || losses >= 2) return absl::OkStatus();
      ++losses;
      return absl::UnavailableError("worker w1 is lost");
    };
    ServingOptions serving;
    serving.first_retry = std::chrono::milliseconds(1);
    const auto loop = Start(rig, serving);
    ASSERT_NE(loop, nullptr);
    std::vector<std::shared_ptr<GenerationStream>> texts, embeddings;
    for (const char* const prompt : kPrompts) {
      ASSERT_OK_AND_ASSIGN(texts.emplace_back(), loop->Submit(Request(prompt, 12)));
      GenerationRequest request = Request(prompt, 1);
      request.embed = true;
      ASSERT_OK_AND_ASSIGN(embeddings.emplace_back(), loop->Submit(std::move(request)));
    }
    SamplerOptions greedy;
    greedy.temperature = 0;
    for (size_t i = 0; i < embeddings.size(); ++i) {
      EXPECT_EQ(TextOf(*embeddings[i]), "");
      const GenerationSummary summary = embeddings[i]->summary();
      EXPECT_EQ(summary.generated_tokens, 0);
      EXPECT_EQ(summary.embedding.size(), model_->hyperparameters().n_embd);
      double squares = 0;
      for (const float x : summary.embedding) squares += double{x} * x;
      EXPECT_NEAR(squares, 1, 1e-5);
      EXPECT_EQ(TextOf(*texts[i]), Alone(kPrompts[i], 12, greedy, fakes));
      if (fakes == 0) {
        want.push_back(summary.embedding);
        continue;
      }
      double likeness = 0;
      for (size_t k = 0; k < want[i].size(); ++k) {
        likeness += double{want[i][k]} * summary.embedding[k];
      }
      EXPECT_NEAR(likeness, 1, 1e-4);
    }
    EXPECT_EQ(losses, fakes == 0 ? 0 : 2);
    ASSERT_TRUE(loop->Drain(kForever));
    EXPECT_EQ(loop->state().pages_used, 0);
  }
  double unlike = 0;
  for (size_t k = 0; k < want[0].size(); ++k) unlike += double{want[0][k]} * want[1][k];
  EXPECT_LT(unlike, 0.9999);  // of different texts
}

}  // namespace
}  // namespace weft
