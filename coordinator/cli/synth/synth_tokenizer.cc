#include "coordinator/cli/synth/synth_tokenizer.h"

#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "coordinator/tokenizer/byte_alphabet.h"

namespace weft {
namespace {

// By frequency in English text, so that a small vocabulary has the more useful merges.
constexpr std::string_view kLetters = "etaoinshrdlucmfwypvbgkjqxz";

constexpr int32_t kNormalToken = 1;
constexpr int32_t kControlToken = 3;

constexpr std::string_view kChatTemplate =
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + "
    "message['content'] + '<|im_end|>\\n' }}{% endfor %}{% if add_generation_prompt %}"
    "{{ '<|im_start|>assistant\\n' }}{% endif %}";

// Grows a vocabulary by merges until it has `limit` tokens.
class MergeBuilder {
 public:
  MergeBuilder(SynthVocabulary& vocabulary, size_t limit)
      : vocabulary_(vocabulary), limit_(limit) {}

  // Merges of every left with every right text, those early in both lists first; returns the merged
  // texts.
  std::vector<std::string> Merge(const std::vector<std::string>& left,
                                 const std::vector<std::string>& right) {
    std::vector<std::string> merged;
    for (size_t sum = 0; sum + 1 < left.size() + right.size(); ++sum) {
      const size_t first = sum < right.size() ? 0 : sum - right.size() + 1;
      for (size_t i = first; i < left.size() && i <= sum; ++i) {
        if (vocabulary_.tokens.size() == limit_) return merged;
        const std::string& tail = right[sum - i];
        vocabulary_.merges.push_back(absl::StrCat(left[i], " ", tail));
        merged.push_back(absl::StrCat(left[i], tail));
        vocabulary_.tokens.push_back(merged.back());
      }
    }
    return merged;
  }

 private:
  SynthVocabulary& vocabulary_;
  size_t limit_;
};

}  // namespace

absl::StatusOr<SynthVocabulary> MakeSynthVocabulary(int64_t size) {
  if (size < kSmallestSynthVocabulary || size > kLargestSynthVocabulary) {
    return absl::InvalidArgumentError(absl::StrCat("a vocabulary of ", size, " is not within ",
                                                   kSmallestSynthVocabulary, " to ",
                                                   kLargestSynthVocabulary));
  }
  SynthVocabulary vocabulary;
  for (int byte = 0; byte < 256; ++byte) {
    vocabulary.tokens.push_back(BytesToAlphabet(std::string(1, static_cast<char>(byte))));
  }
  const std::string space = vocabulary.tokens[' '];
  std::vector<std::string> letters;
  for (const char letter : kLetters) letters.emplace_back(1, letter);

  // Each rule makes texts that no other makes, so tokens are unique.
  MergeBuilder builder(vocabulary, static_cast<size_t>(size - 3));
  const std::vector<std::string> word_starts = builder.Merge({space}, letters);
  const std::vector<std::string> pairs = builder.Merge(letters, letters);
  builder.Merge(word_starts, pairs);
  builder.Merge(pairs, letters);
  builder.Merge(pairs, pairs);

  vocabulary.end_of_text_id = size - 3;
  vocabulary.message_start_id = size - 2;
  vocabulary.message_end_id = size - 1;
  for (const char* text : {"<|endoftext|>", "<|im_start|>", "<|im_end|>"}) {
    vocabulary.tokens.emplace_back(text);
  }
  return vocabulary;
}

absl::Status AddTokenizerMetadata(const SynthVocabulary& vocabulary, GgufMetadata* metadata) {
  std::vector<int32_t> types(vocabulary.tokens.size(), kNormalToken);
  for (const int64_t id :
       {vocabulary.end_of_text_id, vocabulary.message_start_id, vocabulary.message_end_id}) {
    types[static_cast<size_t>(id)] = kControlToken;
  }
  const auto id_value = [](int64_t id) { return GgufValue(static_cast<uint32_t>(id)); };
  std::vector<std::pair<std::string, GgufValue>> entries;
  entries.emplace_back("model", std::string("gpt2"));
  entries.emplace_back("pre", std::string("gpt-2"));
  entries.emplace_back("tokens", GgufArray(vocabulary.tokens));
  entries.emplace_back("token_type", GgufArray(std::move(types)));
  entries.emplace_back("merges", GgufArray(vocabulary.merges));
  entries.emplace_back("bos_token_id", id_value(vocabulary.end_of_text_id));
  entries.emplace_back("eos_token_id", id_value(vocabulary.message_end_id));
  entries.emplace_back("padding_token_id", id_value(vocabulary.end_of_text_id));
  entries.emplace_back("add_bos_token", false);
  for (auto& [key, value] : entries) {
    RETURN_IF_ERROR(metadata->Add(absl::StrCat("tokenizer.ggml.", key), std::move(value)));
  }
  return metadata->Add("tokenizer.chat_template", std::string(kChatTemplate));
}

}  // namespace weft
