#include "coordinator/http/completion_schema.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/coordinator/http/schema_cases.h"

namespace weft {
namespace {

using testing::ElementsAre;

absl::StatusOr<CompletionRequest> Read(const std::string& body) {
  return ReadCompletionRequest(body, SamplerOptions());
}

TEST(CompletionSchema, PromptsOfEveryForm_AreRead) {
  EXPECT_THAT(Read(R"({"prompt": "a"})")->prompts, ElementsAre(PromptInput("a")));
  EXPECT_THAT(Read(R"({"prompt": ""})")->prompts, ElementsAre(PromptInput("")));
  EXPECT_THAT(Read(R"({"prompt": ["a", "b"]})")->prompts,
              ElementsAre(PromptInput("a"), PromptInput("b")));
  EXPECT_THAT(Read(R"({"prompt": [1, 2]})")->prompts,
              ElementsAre(PromptInput(std::vector<int32_t>{1, 2})));
  EXPECT_THAT(Read(R"({"prompt": [[1, 2], [3], "c"]})")->prompts,
              ElementsAre(PromptInput(std::vector<int32_t>{1, 2}),
                          PromptInput(std::vector<int32_t>{3}), PromptInput("c")));
}

TEST(CompletionSchema, AnyValueInAnyPlace_IsReadOrRefused) {
  ReadWithEachValueReplaced(
      R"({"prompt": ["a", [1, 2]], "logprobs": 2, "n": 2, "best_of": 2, "suffix": "", "echo": true,
          "stop": "x", "stream": true, "max_tokens": 1, "logit_bias": {"1": 2}})",
      Read);
  ReadWithEachValueReplaced(R"({"input": ["a", "b"], "encoding_format": "float", "dimensions": 4})",
                            [](const std::string& body) { return ReadEmbeddingRequest(body); });
  ReadWithEachValueReplaced(R"({"content": "a", "add_special": true, "with_pieces": true})",
                            [](const std::string& body) { return ReadTokenizeRequest(body); });
  ReadWithEachValueReplaced(R"({"tokens": [1, 2]})",
                            [](const std::string& body) { return ReadDetokenizeRequest(body); });
}

TEST(CompletionSchema, OtherFields_AreRead) {
  ASSERT_OK_AND_ASSIGN(
      const CompletionRequest request,
      Read(R"({"prompt": "a", "logprobs": 2, "n": 2, "best_of": 2, "suffix": ""})"));
  EXPECT_EQ(request.generation.log_probabilities, 2);
  EXPECT_EQ(request.generation.choices, 2);
  EXPECT_FALSE(request.echo);
  EXPECT_TRUE(Read(R"({"prompt": "a", "echo": true})")->echo);
}

TEST(CompletionSchema, WrongBodies_NameTheField) {
  CheckRefusals(
      {
          {"{}", "prompt", "is missing"},
          {R"({"prompt": 5})", "prompt", "want an array"},
          {R"({"prompt": {}})", "prompt", "want an array"},
          {R"({"prompt": []})", "prompt", "there is none"},
          {R"({"prompt": [1, "a"]})", "prompt[1]", "want an integer"},
          {R"({"prompt": [-1]})", "prompt[0]", "from 0"},
          {R"({"prompt": [[1.5]]})", "prompt[0][0]", "want an integer"},
          {R"({"prompt": [[[1]]]})", "prompt[0][0]", "want an integer"},
          {R"({"prompt": ["a", "b"], "n": 65})", "prompt", "the limit is 128 in all"},
          {R"({"prompt": "a", "suffix": "b"})", "suffix", "only continues", 501},
          {R"({"prompt": "a", "best_of": 3})", "best_of", "use n", 501},
          {R"({"prompt": "a", "echo": true, "logprobs": 1})", "logprobs", "echo", 501},
          {R"({"prompt": "a", "logprobs": true})", "logprobs", "want an integer"},
          {R"({"prompt": "a", "messages": []})", "messages", "knows no such field"},
      },
      Read);
}

TEST(EmbeddingSchema, Bodies_AreReadOrRefused) {
  ASSERT_OK_AND_ASSIGN(
      const EmbeddingRequest request,
      ReadEmbeddingRequest(R"({"model": "m", "input": ["a", "b"], "encoding_format": "base64"})"));
  EXPECT_EQ(request.model, "m");
  EXPECT_EQ(request.inputs.size(), 2);
  EXPECT_TRUE(request.base64);
  CheckRefusals(
      {
          {"{}", "input", "is missing"},
          {R"({"input": 1})", "input", "want an array"},
          {R"({"input": ""})", "input", "is empty"},
          {R"({"input": ["a", ""]})", "input", "is empty"},
          {R"({"input": "a", "encoding_format": "int8"})", "encoding_format", "float or base64"},
          {R"({"input": "a", "dimensions": 5})", "dimensions", "all of them", 501},
          {R"({"input": "a", "temperature": 1})", "temperature", "knows no such field"},
      },
      ReadEmbeddingRequest);
}

TEST(TokenSchema, Bodies_AreReadOrRefused) {
  ASSERT_OK_AND_ASSIGN(const TokenizeRequest request,
                       ReadTokenizeRequest(R"({"content": "a\u0000b", "add_special": true})"));
  EXPECT_EQ(request.content, std::string("a\0b", 3));
  EXPECT_TRUE(request.add_special);
  EXPECT_TRUE(request.parse_special);
  CheckRefusals({{"{}", "content", "is missing"},
                 {R"({"content": 5})", "content", "want a text"},
                 {R"({"content": "a", "with_pieces": 1})", "with_pieces", "true or false"}},
                ReadTokenizeRequest);
  EXPECT_THAT(*ReadDetokenizeRequest(R"({"tokens": [1, 2]})"), ElementsAre(1, 2));
  EXPECT_THAT(*ReadDetokenizeRequest(R"({"tokens": []})"), ElementsAre());
  CheckRefusals({{"{}", "tokens", "is missing"},
                 {R"({"tokens": "a"})", "tokens", "want an array"},
                 {R"({"tokens": [4294967296]})", "tokens[0]", "want an integer"}},
                ReadDetokenizeRequest);
}

}  // namespace
}  // namespace weft
