#include "tests/unit/coordinator/tokenizer/sample_vocabularies.h"

#include <cstdint>

#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "coordinator/tokenizer/byte_alphabet.h"

namespace weft {

GgufMetadata MakeMetadata(std::string_view model, const std::vector<SampleToken>& tokens,
                          const std::vector<std::string>& merges) {
  std::vector<std::string> texts;
  std::vector<float> scores;
  std::vector<int32_t> types;
  for (const SampleToken& token : tokens) {
    texts.push_back(token.text);
    scores.push_back(token.score);
    types.push_back(token.type);
  }
  GgufMetadata metadata;
  metadata.Set("tokenizer.ggml.model", std::string(model));
  metadata.Set("tokenizer.ggml.tokens", GgufArray(std::move(texts)));
  metadata.Set("tokenizer.ggml.token_type", GgufArray(std::move(types)));
  if (model == "llama") {
    metadata.Set("tokenizer.ggml.scores", GgufArray(std::move(scores)));
  } else {
    metadata.Set("tokenizer.ggml.pre", std::string("gpt-2"));
    metadata.Set("tokenizer.ggml.merges", GgufArray(merges));
  }
  return metadata;
}

GgufMetadata MakeSentencePiece(const std::vector<std::string>& pieces,
                               const std::vector<SampleToken>& more) {
  std::vector<SampleToken> tokens = {{"<unk>", 0, 2}, {"<s>", 0, 3}, {"</s>", 0, 3}};
  for (int byte = 0; byte < 256; ++byte) {
    tokens.push_back({absl::StrFormat("<0x%02X>", byte), 0, 6});
  }
  float score = 0;
  for (const std::string& piece : pieces) {
    tokens.push_back({absl::StrReplaceAll(piece, {{"_", "\xE2\x96\x81"}}), score, 1});
    score -= 1;
  }
  tokens.insert(tokens.end(), more.begin(), more.end());
  return MakeMetadata("llama", tokens);
}

GgufMetadata MakeBytePair(const std::vector<std::string>& merges,
                          const std::vector<SampleToken>& more) {
  std::vector<SampleToken> tokens;
  tokens.reserve(256 + merges.size() + more.size());
  for (int byte = 0; byte < 256; ++byte) {
    tokens.push_back({BytesToAlphabet(std::string(1, static_cast<char>(byte)))});
  }
  for (const std::string& merge : merges) {
    tokens.push_back({absl::StrReplaceAll(merge, {{" ", ""}})});
  }
  tokens.insert(tokens.end(), more.begin(), more.end());
  GgufMetadata metadata = MakeMetadata("gpt2", tokens, merges);
  // Without these keys the defaults would name ordinary tokens.
  metadata.Set("tokenizer.ggml.bos_token_id", uint32_t{0xFFFFFFFF});
  metadata.Set("tokenizer.ggml.eos_token_id", uint32_t{0xFFFFFFFF});
  return metadata;
}

}  // namespace weft
