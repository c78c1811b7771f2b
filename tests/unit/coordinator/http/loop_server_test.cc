// The server over a real engine with the demo model on the CPU.
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/gguf/gguf_file.h"
#include "coordinator/http/http_server.h"
#include "coordinator/serving/inference_loop.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/demo_session.h"
#include "tests/support/golden_model.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/coordinator/http/fake_engine.h"
#include "tests/unit/coordinator/http/raw_client.h"

namespace weft {
namespace {

using testing::StartsWith;

class LoopServerTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(
        file_, GgufFile::Open(TestDataFolder() + "/models/shakespeare/shakespeare-q4_0.gguf"));
    ASSERT_OK_AND_ASSIGN(model_, Model::Create(*file_));
    ASSERT_OK_AND_ASSIGN(tokenizer_, Tokenizer::Create(file_->metadata()));
    ServingOptions serving;
    serving.most_waiting = 16;
    ASSERT_OK_AND_ASSIGN(
        loop_, InferenceLoop::Start([this] { return DemoSession::Open(*model_, {}, clock_); },
                                    *tokenizer_, serving, clock_, logger_));
    engine_ = std::make_unique<LoopEngine>(*loop_);
    HttpServerOptions options;
    options.port = 0;
    options.model_name = "demo";
    HttpServer::Parts parts;
    parts.engine = engine_.get();
    parts.tokenizer = tokenizer_.get();
    ASSERT_OK_AND_ASSIGN(server_, HttpServer::Start(options, parts, clock_, logger_));
  }

  // The JSON of a reply to a POST; null and a failure if the status is another.
  Json Post(const std::string& body, int status = 200) {
    RawClient client(server_->port());
    std::string request = PostText("/v1/completions", body);
    request.insert(request.find("\r\n") + 2, "Connection: close\r\n");
    client.Send(request);
    EXPECT_TRUE(client.ReadToEnd(std::chrono::seconds(60)));
    EXPECT_EQ(client.status(), status) << client.all();
    return Json::parse(client.all().substr(client.all().find("\r\n\r\n") + 4), nullptr, false);
  }

  // Until nothing is under way. False: that took too long.
  bool AwaitIdle() {
    const Clock::TimePoint deadline = clock_.Now() + std::chrono::seconds(30);
    Mutex mutex;
    CondVar never;
    MutexLock lock(mutex);
    while (clock_.Now() < deadline) {
      const ServingState state = loop_->state();
      if (state.active + state.waiting == 0) return true;
      never.WaitUntil(mutex, clock_.Now() + std::chrono::milliseconds(5));
    }
    return false;
  }

  SystemClock clock_;
  Logger logger_{"test", LogLevel::kError};
  std::unique_ptr<GgufFile> file_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<InferenceLoop> loop_;
  std::unique_ptr<LoopEngine> engine_;
  std::unique_ptr<HttpServer> server_;
};

constexpr char kGreedy[] = R"("max_tokens": 12, "temperature": 0, "ignore_eos": true)";

TEST_F(LoopServerTest, Batched_EqualsAlone) {
  const std::vector<std::string> prompts = {"ROMEO:", "First Citizen:", "O, speak", "To be"};
  std::vector<std::string> alone;
  for (const std::string& prompt : prompts) {
    const Json reply = Post(absl::StrCat("{\"prompt\": \"", prompt, "\", ", kGreedy, "}"));
    alone.push_back(reply["choices"][0]["text"].get<std::string>());
    EXPECT_EQ(reply["choices"][0]["finish_reason"], "length");
    EXPECT_EQ(reply["usage"]["completion_tokens"], 12);
    EXPECT_FALSE(alone.back().empty());
  }
  const Json together =
      Post(absl::StrCat("{\"prompt\": ", Json(prompts).dump(), ", \"n\": 2, ", kGreedy, "}"));
  ASSERT_EQ(together["choices"].size(), 8);
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(together["choices"][i]["text"], alone[i / 2]) << i;
  EXPECT_GT(together["usage"]["prompt_tokens"], 4);
}

TEST_F(LoopServerTest, LogProbabilities_AreOfTheText) {
  const Json reply = Post(absl::StrCat(R"({"prompt": "ROMEO:", "logprobs": 3, )", kGreedy, "}"));
  const Json& choice = reply["choices"][0];
  const Json& log_probabilities = choice["logprobs"];
  ASSERT_EQ(log_probabilities["tokens"].size(), 12);
  std::string text;
  for (size_t i = 0; i < 12; ++i) {
    text += log_probabilities["tokens"][i].get<std::string>();
    // Greedy: the chosen one is the likeliest.
    EXPECT_EQ(log_probabilities["top_logprobs"][i].size(), 3);
    for (const auto& [token, value] : log_probabilities["top_logprobs"][i].items()) {
      EXPECT_LE(value, log_probabilities["token_logprobs"][i]) << token;
    }
  }
  EXPECT_EQ(text, choice["text"].get<std::string>());
}

TEST_F(LoopServerTest, SeedsAndStops_AreKept) {
  const auto ask = [&](const std::string& fields) {
    return Post("{\"prompt\": \"ROMEO:\", \"max_tokens\": 16, \"ignore_eos\": true" + fields +
                "}")["choices"][0];
  };
  const std::string one = ask(", \"seed\": 7")["text"];
  EXPECT_EQ(ask(", \"seed\": 7")["text"], one);
  const std::string stop = one.substr(one.size() / 2, 2);
  const Json stopped = ask(", \"seed\": 7, \"stop\": " + Json(stop).dump());
  EXPECT_EQ(stopped["text"], one.substr(0, one.find(stop)));
  EXPECT_EQ(stopped["finish_reason"], "stop");
}

TEST_F(LoopServerTest, WhatCannotRun_IsRefused) {
  EXPECT_EQ(Post("{\"prompt\": \"" + std::string(2000, 'a') + "\"}", 400)["error"]["param"],
            "prompt");
  EXPECT_EQ(Post(R"({"prompt": "a", "n": 100, "max_tokens": 90, "ignore_eos": true})",
                 429)["error"]["type"],
            "rate_limit_error");
  EXPECT_TRUE(AwaitIdle());
}

TEST_F(LoopServerTest, ClientsThatLeave_FreeTheirPages) {
  for (int round = 0; round < 5; ++round) {
    std::vector<std::unique_ptr<RawClient>> clients;
    for (int i = 0; i < 8; ++i) {
      clients.push_back(std::make_unique<RawClient>(server_->port()));
      clients.back()->Send(PostText(
          "/v1/completions",
          R"({"prompt": "ROMEO:", "max_tokens": 80, "ignore_eos": true, "stream": true})"));
    }
    EXPECT_THAT(clients[round]->ReadUntil("data: "), StartsWith("HTTP/1.1 200"));
    clients.clear();
    ASSERT_TRUE(AwaitIdle());
  }
  EXPECT_EQ(loop_->state().pages_used, 0);
  EXPECT_GT(loop_->state().counters.cancelled, 0);
  EXPECT_EQ(loop_->state().counters.failed, 0);
}

}  // namespace
}  // namespace weft
