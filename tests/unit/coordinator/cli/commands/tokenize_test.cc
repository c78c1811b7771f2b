#include "coordinator/cli/commands/tokenize.h"

#include <cstdlib>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string ModelPath(const std::string& name) {
  const char* data = std::getenv("WEFT_TEST_DATA");
  EXPECT_NE(data, nullptr) << "run by ctest, or set WEFT_TEST_DATA to tests/data";
  return absl::StrCat(data == nullptr ? "" : data, "/models/", name, "/model.gguf");
}

std::string RunModel(TokenizeOptions options, const std::string& model = "llama-plain") {
  options.model_path = ModelPath(model);
  const auto output = RunTokenize(options);
  EXPECT_OK(output);
  if (!output.ok()) return {};
  EXPECT_THAT(output->warnings, IsEmpty());
  return output->text;
}

// The ids are those of tests/data/models/llama-plain/cases.json.
TEST(TokenizeTest, Text_IdsOnOneLineOrJson) {
  EXPECT_EQ(RunModel({.text = "the miller said"}), "1 5 42 28 24 27 27 13 8 16 24 19\n");
  EXPECT_EQ(RunModel({.text = "the miller said", .json = true}),
            "{\"ids\":[1,5,42,28,24,27,27,13,8,16,24,19]}\n");
}

TEST(TokenizeTest, NoSpecial_NeitherAddsNorParses) {
  EXPECT_EQ(RunModel({.text = "the", .no_special = true}), "5\n");
  const auto double_bos = RunTokenize({.model_path = ModelPath("llama-plain"), .text = "<s>"});
  ASSERT_OK(double_bos);
  EXPECT_EQ(double_bos->text, "1 1\n");
  EXPECT_THAT(double_bos->warnings, ElementsAre(HasSubstr("now there are two")));
  EXPECT_EQ(RunModel({.text = "<|im_end|>"}, "qwen2"), "127\n");
  const std::string literal = RunModel({.text = "(im)end", .no_special = true}, "qwen2");
  EXPECT_THAT(literal, ::testing::Not(HasSubstr("127")));
  EXPECT_EQ(RunModel({.text = "", .no_special = true}), "\n");
  EXPECT_EQ(RunModel({.text = "", .no_special = true, .json = true}), "{\"ids\":[]}\n");
}

TEST(TokenizeTest, File_IsNotTrimmed) {
  const std::string path = ::testing::TempDir() + "/tokenize_test.txt";
  std::ofstream(path, std::ios::binary) << " the \n";
  EXPECT_EQ(RunModel({.file_path = path}), RunModel({.text = " the \n"}));
  EXPECT_NE(RunModel({.file_path = path}), RunModel({.text = "the"}));
  std::ofstream(path, std::ios::binary | std::ios::trunc).close();
  EXPECT_EQ(RunModel({.file_path = path}), "1\n");
}

TEST(TokenizeTest, Detokenize_TakesBackWhatTokenizeGives) {
  EXPECT_EQ(RunModel({.detokenize = "5 42 28,24, 27\n27 13"}), "the miller\n");
  EXPECT_EQ(RunModel({.detokenize = "1 5"}), "<s> the\n");
  EXPECT_EQ(RunModel({.detokenize = "5 2", .no_special = true}), "the\n");
  EXPECT_EQ(RunModel({.detokenize = "5", .json = true}), "{\"text\":\"the\"}\n");
  EXPECT_EQ(RunModel({.detokenize = ""}), "\n");
}

TEST(TokenizeTest, BadOptions_OneLineErrors) {
  const std::string model = ModelPath("llama-plain");
  const auto run = [](const TokenizeOptions& options) { return RunTokenize(options).status(); };
  EXPECT_THAT(run({.model_path = model}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("exactly one")));
  EXPECT_THAT(run({.model_path = model, .text = "a", .detokenize = "1"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("exactly one")));
  for (const char* ids : {"x", "-1", "90", "1 99999999999999999999", "1.5"}) {
    EXPECT_THAT(run({.model_path = model, .detokenize = ids}),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("want 0 to 89")))
        << ids;
  }
  EXPECT_THAT(run({.model_path = "/no/such.gguf", .text = "a"}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/no/such.gguf")));
  EXPECT_THAT(run({.model_path = model, .file_path = "/no/such.txt"}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/no/such.txt")));
}

}  // namespace
}  // namespace weft
