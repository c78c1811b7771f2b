// Chat, completions and the small endpoints over an engine that says what the test wants.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coordinator/http/chat_handler.h"
#include "coordinator/http/completion_handler.h"
#include "coordinator/http/embedding_handler.h"
#include "coordinator/http/model_handlers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/coordinator/http/fake_engine.h"

namespace weft {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

// Keeps what is written; `written` may make the engine say more.
class KeptBytes final : public ByteSink {
 public:
  bool Write(std::string_view bytes) override {
    all.append(bytes);
    ++writes;
    if (written) written(writes);
    return writes < closes_after;
  }
  std::string all;
  int writes = 0;
  int closes_after = 1 << 30;  // writes
  std::function<void(int)> written;
};

class HandlersTest : public testing::Test {
 protected:
  HandlersTest() : tokenizer_(DemoTokenizer()), format_(*tokenizer_), ids_(1) {
    model_.name = "demo";
    model_.created = 1700000000;
    model_.engine = &engine_;
    model_.tokenizer = tokenizer_.get();
    model_.chat = &format_;
    model_.clock = &clock_;
    model_.ids = &ids_;
  }

  static HttpRequest Post(const std::string& body) {
    HttpRequest request;
    request.method = "POST";
    request.body = body;
    return request;
  }
  HttpReply Chat(const std::string& fields) {
    return HandleChat(model_,
                      Post(R"({"messages": [{"role": "user", "content": "hi"}])" + fields + "}"),
                      "me", client_);
  }
  HttpReply Complete(const std::string& body) {
    return HandleCompletion(model_, Post(body), "me", client_);
  }
  static Json BodyOf(const HttpReply& reply) { return Json::parse(reply.body, nullptr, false); }

  // The chunks of a streamed reply; that it ends with [DONE] is checked.
  static std::vector<Json> Chunks(const HttpReply& reply, KeptBytes& sink, bool done = true) {
    EXPECT_EQ(reply.content_type, "text/event-stream") << reply.body;
    if (!reply.stream) return {};
    reply.stream(sink);
    std::vector<Json> chunks;
    std::string rest = sink.all;
    bool ended = false;
    for (size_t end = 0; (end = rest.find("\n\n")) != std::string::npos; rest.erase(0, end + 2)) {
      const std::string event = rest.substr(0, end);
      EXPECT_THAT(event, StartsWith("data: "));
      if (event == "data: [DONE]") {
        ended = true;
      } else {
        EXPECT_FALSE(ended);
        chunks.push_back(Json::parse(event.substr(6), nullptr, false));
        EXPECT_FALSE(chunks.back().is_discarded()) << event;
      }
    }
    EXPECT_EQ(ended, done) << sink.all;
    return chunks;
  }

  FakeEngine engine_;
  std::unique_ptr<Tokenizer> tokenizer_;
  FakeFormat format_;
  SystemClock clock_;
  IdSource ids_;
  ServedModel model_;
  PatientClient client_;
};

TEST_F(HandlersTest, Chat_WholeReply_IsOpenAis) {
  engine_.SetPlay(Says({"Hello", " you"}));
  const HttpReply reply = Chat(R"(, "seed": 5, "stop": "x", "max_tokens": 7)");
  ASSERT_EQ(reply.status, 200) << reply.body;
  const Json body = BodyOf(reply);
  EXPECT_THAT(body["id"].get<std::string>(), StartsWith("chatcmpl-"));
  EXPECT_EQ(body["object"], "chat.completion");
  EXPECT_EQ(body["model"], "demo");
  EXPECT_EQ(body["choices"].dump(),
            R"([{"index":0,"message":{"role":"assistant","content":"Hello you","refusal":null},)"
            R"("logprobs":null,"finish_reason":"stop"}])");
  EXPECT_EQ(body["usage"]["completion_tokens"], 2);
  EXPECT_EQ(body["usage"]["prompt_tokens_details"]["cached_tokens"], 1);
  EXPECT_EQ(body["usage"]["total_tokens"], body["usage"]["prompt_tokens"].get<int>() + 2);

  const GenerationRequest& request = engine_.request(0);
  EXPECT_EQ(request.prompt, *tokenizer_->Encode("<user>hi", EncodeOptions{}));
  EXPECT_EQ(request.sampler.seed, 5);
  EXPECT_EQ(request.max_tokens, 7);
  EXPECT_THAT(request.stop, ElementsAre("x", "<user>"));
  EXPECT_EQ(request.client, "me");
}

TEST_F(HandlersTest, Chat_Stream_HasRoleTextReasonUsageAndEnd) {
  const HttpReply reply = Chat(R"(, "stream": true, "stream_options": {"include_usage": true})");
  KeptBytes sink;
  sink.written = [&](int writes) {
    if (writes == 1) engine_.stream(0).Push({"Hel", {}});
    if (writes == 2) engine_.stream(0).Push({"lo", {}});
    if (writes == 3) Says({}, FinishReason::kLength)(engine_.request(0), engine_.stream(0));
  };
  const std::vector<Json> chunks = Chunks(reply, sink);
  ASSERT_EQ(chunks.size(), 5);
  EXPECT_EQ(chunks[0]["choices"].dump(),
            R"([{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,)"
            R"("finish_reason":null}])");
  EXPECT_TRUE(chunks[0].contains("usage") && chunks[0]["usage"].is_null());
  EXPECT_EQ(chunks[1]["choices"][0]["delta"].dump(), R"({"content":"Hel"})");
  EXPECT_EQ(chunks[2]["choices"][0]["delta"].dump(), R"({"content":"lo"})");
  EXPECT_EQ(chunks[3]["choices"][0]["delta"].dump(), "{}");
  EXPECT_EQ(chunks[3]["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(chunks[4]["choices"].dump(), "[]");
  EXPECT_TRUE(chunks[4]["usage"].is_object());
  for (const Json& chunk : chunks) {
    EXPECT_EQ(chunk["object"], "chat.completion.chunk");
    EXPECT_EQ(chunk["id"], chunks[0]["id"]);
  }
}

TEST_F(HandlersTest, Chat_ReasoningAndToolCalls_AreKeptApart) {
  const auto play = [](const GenerationRequest& request, GenerationStream& stream) {
    Says({"C:look"})(request, stream);
  };
  engine_.SetPlay(play);
  Json message = BodyOf(Chat(""))["choices"][0]["message"];
  EXPECT_TRUE(message["content"].is_null());
  EXPECT_EQ(message["tool_calls"][0]["function"].dump(), R"({"name":"look","arguments":""})");
  EXPECT_THAT(message["tool_calls"][0]["id"].get<std::string>(), StartsWith("call_"));
  EXPECT_EQ(BodyOf(Chat(""))["choices"][0]["finish_reason"], "tool_calls");

  engine_.SetPlay(nullptr);
  const HttpReply reply = Chat(R"(, "stream": true)");
  const int64_t last = engine_.submitted() - 1;
  KeptBytes sink;
  const std::vector<std::string> pieces = {"R:hm", "C:look", "A:{\"x\"", "A::1}", "C:go"};
  sink.written = [&](int writes) {
    if (writes <= static_cast<int>(pieces.size())) {
      engine_.stream(last).Push({pieces[writes - 1], {}});
    } else if (writes == static_cast<int>(pieces.size()) + 1) {
      Says({})(engine_.request(last), engine_.stream(last));
    }
  };
  const std::vector<Json> chunks = Chunks(reply, sink);
  ASSERT_EQ(chunks.size(), 7);
  EXPECT_EQ(chunks[1]["choices"][0]["delta"].dump(), R"({"reasoning_content":"hm"})");
  const Json call = chunks[2]["choices"][0]["delta"]["tool_calls"][0];
  EXPECT_EQ(call["index"], 0);
  EXPECT_EQ(call["type"], "function");
  EXPECT_EQ(call["function"].dump(), R"({"name":"look","arguments":""})");
  EXPECT_EQ(chunks[3]["choices"][0]["delta"].dump(),
            R"({"tool_calls":[{"index":0,"function":{"arguments":"{\"x\""}}]})");
  EXPECT_EQ(chunks[5]["choices"][0]["delta"]["tool_calls"][0]["index"], 1);
  EXPECT_NE(chunks[5]["choices"][0]["delta"]["tool_calls"][0]["id"], call["id"]);
  EXPECT_EQ(chunks[6]["choices"][0]["finish_reason"], "tool_calls");
}

TEST_F(HandlersTest, Chat_SeveralChoices_HaveSeedsAndTextsOfTheirOwn) {
  engine_.SetPlay([](const GenerationRequest& request, GenerationStream& stream) {
    Says({std::to_string(request.sampler.seed)})(request, stream);
  });
  const Json body = BodyOf(Chat(R"(, "n": 3, "seed": 10)"));
  ASSERT_EQ(body["choices"].size(), 3);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(body["choices"][i]["index"], i);
    EXPECT_EQ(body["choices"][i]["message"]["content"], std::to_string(10 + i));
  }
  EXPECT_EQ(body["usage"]["completion_tokens"], 3);
  EXPECT_EQ(body["usage"]["prompt_tokens"], engine_.request(0).prompt.size());

  KeptBytes sink;
  const std::vector<Json> chunks = Chunks(Chat(R"(, "n": 3, "stream": true)"), sink);
  std::map<int, int> ends;
  for (const Json& chunk : chunks) {
    const Json& choice = chunk["choices"][0];
    if (choice["finish_reason"] == "stop") ++ends[choice["index"].get<int>()];
  }
  EXPECT_THAT(ends, ElementsAre(testing::Pair(0, 1), testing::Pair(1, 1), testing::Pair(2, 1)));
}

TEST_F(HandlersTest, Chat_LogProbabilities_AreOfTokensWithBytes) {
  engine_.SetPlay([](const GenerationRequest& request, GenerationStream& stream) {
    stream.Push({"x", {{{5, -0.5f}, {{5, -0.5f}, {6, -1.5f}}}}});
    Says({})(request, stream);
  });
  const Json whole = BodyOf(Chat(R"(, "logprobs": true, "top_logprobs": 2)"));
  const Json token = whole["choices"][0]["logprobs"]["content"][0];
  EXPECT_EQ(engine_.request(0).log_probabilities, 2);
  EXPECT_EQ(token["logprob"], -0.5);
  EXPECT_EQ(token["token"], tokenizer_->Piece(5, true));
  EXPECT_EQ(token["bytes"].size(), tokenizer_->Piece(5, true).size());
  EXPECT_EQ(token["top_logprobs"][1]["logprob"], -1.5);
  KeptBytes sink;
  const std::vector<Json> chunks = Chunks(Chat(R"(, "logprobs": true, "stream": true)"), sink);
  EXPECT_EQ(chunks[1]["choices"][0]["logprobs"]["content"][0]["logprob"], -0.5);
  EXPECT_TRUE(chunks[2]["choices"][0]["logprobs"].is_null());
}

TEST_F(HandlersTest, Chat_WhatCannotBe_IsRefusedByName) {
  const auto refused = [&](const std::string& fields, int status, const std::string& param) {
    const HttpReply reply = Chat(fields);
    EXPECT_EQ(reply.status, status) << reply.body;
    EXPECT_EQ(BodyOf(reply)["error"]["param"], param) << reply.body;
  };
  refused(R"(, "model": "other")", 404, "model");
  refused(R"(, "temperature": 900)", 400, "temperature");
  refused(R"(, "logit_bias": {"99999999": 1})", 400, "logit_bias.99999999");
  refused(R"(, "tools": [{"type": "function", "function": {"name": "f"}}],
             "tool_choice": "required")",
          501, "tool_choice");
  EXPECT_EQ(engine_.submitted(), 0);
  model_.chat = nullptr;
  refused("", 501, "messages");
}

TEST_F(HandlersTest, Completion_FormsWithoutConstraints_AreRefusedByName) {
  for (const auto& [field, value] : {std::pair("response_format", R"({"type": "json_object"})"),
                                     {"grammar", R"("root ::= x")"}}) {
    const HttpReply reply =
        Complete(absl::StrCat(R"({"prompt": "hi", ")", field, R"(": )", value, "}"));
    EXPECT_EQ(reply.status, 501) << reply.body;
    EXPECT_EQ(BodyOf(reply)["error"]["param"], field) << reply.body;
  }
  EXPECT_EQ(engine_.submitted(), 0);
}

TEST_F(HandlersTest, Submit_QueueFull_CancelsTheOthersAndSaysWhenToRetry) {
  engine_.RefuseAfter(2, absl::ResourceExhaustedError("256 requests wait already"));
  const HttpReply reply = Chat(R"(, "n": 3)");
  EXPECT_EQ(reply.status, 429);
  EXPECT_EQ(reply.headers.at(0).first, "Retry-After");
  EXPECT_EQ(engine_.cancelled(), 2);
  engine_.RefuseAfter(0, absl::UnavailableError("the loop drains"));
  EXPECT_EQ(Chat("").status, 503);
}

TEST_F(HandlersTest, Stream_Error_IsTheLastEvent) {
  const HttpReply reply = Chat(R"(, "n": 2, "stream": true)");
  KeptBytes sink;
  sink.written = [&](int writes) {
    if (writes != 2) return;
    engine_.stream(1).Finish(absl::UnavailableError("worker w1 was lost"), {});
  };
  const std::vector<Json> chunks = Chunks(reply, sink, /*done=*/false);
  ASSERT_EQ(chunks.size(), 3);
  EXPECT_EQ(chunks[2]["error"]["message"], "worker w1 was lost");
  EXPECT_EQ(chunks[2]["error"]["type"], "service_unavailable_error");
}

TEST_F(HandlersTest, Whole_DeadlineOfTheRequest_IsAGatewayTimeout) {
  engine_.SetPlay([](const GenerationRequest& request, GenerationStream& stream) {
    EXPECT_NE(request.deadline, Clock::TimePoint::max());
    stream.Finish(absl::DeadlineExceededError("not finished in time"), {});
  });
  EXPECT_EQ(Chat(R"(, "timeout": 0.5)").status, 504);
  EXPECT_EQ(Chat(R"(, "timeout": 0.5, "n": 4)").status, 504);
}

TEST_F(HandlersTest, Stream_NobodyReads_IsCancelled) {
  {
    const HttpReply reply = Chat(R"(, "stream": true)");
    KeptBytes sink;
    sink.closes_after = 2;
    sink.written = [&](int) { engine_.stream(0).Push({"more", {}}); };
    reply.stream(sink);
    EXPECT_EQ(sink.writes, 2);
  }
  EXPECT_EQ(engine_.cancelled(), 1);
}

TEST_F(HandlersTest, Completion_BatchWithEcho_KeepsOrder) {
  engine_.SetPlay([](const GenerationRequest& request, GenerationStream& stream) {
    Says({std::to_string(request.prompt.size())}, FinishReason::kStopText)(request, stream);
  });
  const Json body =
      BodyOf(Complete(R"({"model": "demo", "prompt": [[1, 2], [1, 2, 3]], "n": 2, "echo": true})"));
  ASSERT_EQ(body["choices"].size(), 4) << body;
  EXPECT_EQ(body["object"], "text_completion");
  const std::string two = tokenizer_->Decode(std::vector<int32_t>{1, 2}, DecodeOptions{});
  const std::string three = tokenizer_->Decode(std::vector<int32_t>{1, 2, 3}, DecodeOptions{});
  EXPECT_EQ(body["choices"][0]["text"], two + "2");
  EXPECT_EQ(body["choices"][1]["text"], two + "2");
  EXPECT_EQ(body["choices"][2]["text"], three + "3");
  EXPECT_EQ(body["choices"][3]["index"], 3);
  EXPECT_EQ(body["choices"][3]["finish_reason"], "stop");
  EXPECT_EQ(body["usage"]["prompt_tokens"], 5);
  EXPECT_EQ(body["usage"]["completion_tokens"], 4);
}

TEST_F(HandlersTest, Completion_Stream_HasTextAndLogProbabilities) {
  engine_.SetPlay([](const GenerationRequest& request, GenerationStream& stream) {
    stream.Push({"ab", {{{5, -0.5f}, {{6, -0.25f}}}, {{6, -1.f}, {}}}});
    Says({}, FinishReason::kContextFull)(request, stream);
  });
  KeptBytes sink;
  const std::vector<Json> chunks =
      Chunks(Complete(R"({"prompt": "a", "stream": true, "logprobs": 1})"), sink);
  ASSERT_EQ(chunks.size(), 2);
  const Json& choice = chunks[0]["choices"][0];
  EXPECT_EQ(choice["text"], "ab");
  EXPECT_EQ(choice["logprobs"]["token_logprobs"].dump(), "[-0.5,-1.0]");
  EXPECT_EQ(choice["logprobs"]["top_logprobs"][0][tokenizer_->Piece(6, true)], -0.25);
  EXPECT_EQ(choice["logprobs"]["text_offset"][1], tokenizer_->Piece(5, false).size());
  EXPECT_EQ(chunks[1]["choices"][0]["finish_reason"], "length");
}

TEST_F(HandlersTest, Completion_WrongPrompts_AreRefused) {
  const auto param = [&](const std::string& body) {
    return BodyOf(Complete(body))["error"]["param"];
  };
  EXPECT_EQ(param(R"({"prompt": [99999999]})"), "prompt");
  EXPECT_EQ(param(R"({"prompt": [[]]})"), "prompt");
  EXPECT_EQ(param("{\"prompt\": \"" + std::string(200000, 'a') + " b\"}"), "prompt");
  EXPECT_EQ(engine_.submitted(), 0);
}

TEST_F(HandlersTest, Dry_BreakersOfTheBody_ReachTheSampler) {
  engine_.SetPlay(Says({"x"}));
  EXPECT_EQ(Chat("").status, 200);
  EXPECT_EQ(engine_.request(0).sampler.dry_breakers, nullptr);
  EXPECT_EQ(Chat(R"(, "dry_multiplier": 0.8, "dry_sequence_breakers": ["\n"])").status, 200);
  ASSERT_NE(engine_.request(1).sampler.dry_breakers, nullptr);
  EXPECT_FALSE(engine_.request(1).sampler.dry_breakers->empty());
}

TEST_F(HandlersTest, Embeddings_ComeAsNumbersOrBytes) {
  engine_.SetPlay([](const GenerationRequest& request, GenerationStream& stream) {
    GenerationSummary summary;
    summary.prompt_tokens = static_cast<int64_t>(request.prompt.size());
    if (request.embed) summary.embedding = {0.5f, -2.0f};
    stream.Finish(absl::OkStatus(), summary);
  });
  const auto embed = [&](const std::string& body) {
    return HandleEmbeddings(model_, Post(body), "me", client_);
  };
  const HttpReply numbers = embed(R"({"input": ["to be", "or not"]})");
  ASSERT_EQ(numbers.status, 200) << numbers.body;
  const Json reply = BodyOf(numbers);
  EXPECT_EQ(reply["object"], "list");
  EXPECT_EQ(reply["model"], "demo");
  ASSERT_EQ(reply["data"].size(), 2u);
  EXPECT_EQ(reply["data"][1]["index"], 1);
  EXPECT_EQ(reply["data"][1]["embedding"], Json::parse("[0.5, -2.0]"));
  EXPECT_EQ(reply["usage"]["prompt_tokens"], reply["usage"]["total_tokens"]);
  EXPECT_GT(reply["usage"]["total_tokens"].get<int>(), 2);
  const Json bytes = BodyOf(embed(R"({"input": "to be", "encoding_format": "base64"})"));
  EXPECT_EQ(bytes["data"][0]["embedding"], "AAAAPwAAAMA=");
  EXPECT_EQ(embed(R"({"input": "a", "model": "other"})").status, 404);
  EXPECT_EQ(BodyOf(embed(R"({"input": [99999999]})"))["error"]["param"], "input");
}

TEST_F(HandlersTest, ModelsAndTokens_AreTold) {
  EXPECT_EQ(BodyOf(HandleModels(model_))["data"][0]["id"], "demo");
  EXPECT_EQ(BodyOf(HandleModel(model_, "demo"))["created"], 1700000000);
  EXPECT_EQ(HandleModel(model_, "other").status, 404);
  const Json tokens = BodyOf(HandleTokenize(model_, Post(R"({"content": "to be"})")))["tokens"];
  const std::string text =
      BodyOf(HandleDetokenize(model_, Post(Json{{"tokens", tokens}}.dump())))["content"];
  EXPECT_THAT(text, HasSubstr("to be"));
  const Json pieces = BodyOf(
      HandleTokenize(model_, Post(R"({"content": "to be", "with_pieces": true})")))["tokens"];
  EXPECT_EQ(pieces[0]["id"], tokens[0]);
  EXPECT_EQ(HandleDetokenize(model_, Post(R"({"tokens": [99999999]})")).status, 400);
}

}  // namespace
}  // namespace weft
