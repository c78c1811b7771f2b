#include "coordinator/tokenizer/end_of_generation.h"

#include <string_view>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/status_macros.h"

namespace weft {
namespace {

constexpr const char* kKeys[] = {
    "tokenizer.ggml.eot_token_id",     "tokenizer.ggml.eom_token_id",
    "tokenizer.ggml.fim_pad_token_id", "tokenizer.ggml.fim_rep_token_id",
    "tokenizer.ggml.fim_sep_token_id",
};

constexpr std::string_view kTexts[] = {
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|flush|>",
    "<|calls|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "</s>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<|end_of_text|>",
    "<eos>",
    "<turn|>",
    "<|tool_response>",
    "<\uFF5Cend\u2581of\u2581sentence\uFF5C>",
    "<end_of_utterance>",
    "[e~[",
};

// Fill-in-the-middle tokens that a file need not name by a key.
constexpr std::string_view kFillInTexts[] = {
    "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>", "<fim_pad>", "<reponame>", "<|fim_repo|>",
};

class EndSet {
 public:
  explicit EndSet(Vocabulary* vocabulary) : vocabulary_(*vocabulary) {}

  void Add(TokenId id) {
    if (vocabulary_.Contains(id)) ids_.insert(id);
  }
  bool HasText(std::string_view text) const { return ids_.contains(vocabulary_.Find(text)); }

  void AddByText(std::string_view text, std::vector<std::string>* warnings) {
    const TokenId id = vocabulary_.Find(text);
    if (id == kNoToken) return;
    Add(id);
    if (vocabulary_.type(id) == TokenType::kControl) return;
    vocabulary_.set_type(id, TokenType::kControl);
    warnings->push_back(absl::StrCat("token ", id, " '", AbslView(text),
                                     "' ends the generation, but is not marked as control token"));
  }
  void Remove(std::string_view text, TokenType type) {
    const TokenId id = vocabulary_.Find(text);
    if (id == kNoToken || ids_.erase(id) == 0) return;
    vocabulary_.set_type(id, type);
  }
  void MakeVisible(std::string_view text) {
    const TokenId id = vocabulary_.Find(text);
    if (id != kNoToken) vocabulary_.set_type(id, TokenType::kUserDefined);
  }

  absl::flat_hash_set<TokenId> Take() { return std::move(ids_); }

 private:
  Vocabulary& vocabulary_;
  absl::flat_hash_set<TokenId> ids_;
};

// Where `<|end|>` ends a message and other tokens end the generation, it must not be in the set.
void ApplyExceptions(EndSet* set) {
  const bool has_call = set->HasText("<|call|>");
  if (set->HasText("<|return|>") && has_call && set->HasText("<|end|>")) {
    set->Remove("<|end|>", TokenType::kUserDefined);
    for (const char* text : {"<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"}) {
      set->MakeVisible(text);
    }
  }
  if (set->HasText("<|flush|>") && (set->HasText("<|calls|>") || has_call)) {
    set->Remove("<|end|>", TokenType::kUserDefined);
  }
  if (set->HasText("<|tool_response>")) set->Remove("</s>", TokenType::kNormal);
}

}  // namespace

absl::StatusOr<TokenId> ReadTokenId(const GgufMetadata& metadata, const std::string& key,
                                    TokenId default_id, const Vocabulary& vocabulary,
                                    std::vector<std::string>* warnings) {
  ASSIGN_OR_RETURN(const int64_t id, metadata.IntegerOr(key, default_id));
  if (vocabulary.Contains(id)) return static_cast<TokenId>(id);
  if (metadata.Has(key)) {
    warnings->push_back(absl::StrCat("key '", key, "' = ", id, " is ignored: the vocabulary has ",
                                     vocabulary.size(), " tokens"));
  }
  return kNoToken;
}

absl::StatusOr<absl::flat_hash_set<TokenId>> FindEndOfGeneration(
    const GgufMetadata& metadata, TokenId eos, Vocabulary* vocabulary,
    std::vector<std::string>* warnings) {
  EndSet set(vocabulary);
  set.Add(eos);
  for (const char* key : kKeys) {
    ASSIGN_OR_RETURN(const TokenId id, ReadTokenId(metadata, key, kNoToken, *vocabulary, warnings));
    set.Add(id);
  }
  for (const std::string_view text : kTexts) set.AddByText(text, warnings);
  for (const std::string_view text : kFillInTexts) set.Add(vocabulary->Find(text));
  ApplyExceptions(&set);
  return set.Take();
}

}  // namespace weft
