#include "coordinator/tokenizer/pre_tokenizer_table.h"

#include <algorithm>
#include <array>

namespace weft {
namespace {

// Contractions with any case are written out, because (?i:'s) also matches U+017F in some
// libraries.
#define WEFT_ANY_CASE_CONTRACTIONS "'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]"
#define WEFT_BLANK_TAIL R"(\s*[\r\n]+|\s+(?!\S)|\s+)"
#define WEFT_UPPER R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])"
#define WEFT_LOWER R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])"

constexpr std::string_view kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S))";

constexpr std::string_view kLlama3[] = {
    WEFT_ANY_CASE_CONTRACTIONS
    R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|)" WEFT_BLANK_TAIL};

constexpr std::string_view kQwen2[] = {
    WEFT_ANY_CASE_CONTRACTIONS
    R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|)" WEFT_BLANK_TAIL};

constexpr std::string_view kQwen35[] = {
    WEFT_ANY_CASE_CONTRACTIONS
    R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|)" WEFT_BLANK_TAIL};

constexpr std::string_view kGpt2Alone[] = {kGpt2};

constexpr std::string_view kDefault[] = {R"([\p{P}$+<=>^~|]+)", kGpt2, R"(\p{N}+)",
                                         "[0-9][0-9][0-9]"};

constexpr std::string_view kStarcoder[] = {R"(\p{N})", kGpt2};

constexpr std::string_view kFalcon[] = {R"([\p{P}$+<=>^~|`]+)", kGpt2, "[0-9][0-9][0-9]"};

// The spec leaves out the exact letter and punctuation classes of this one; cased letters and
// ASCII, full-width and general punctuation come close. (?<!\s)\s++$ finds what \s+$ finds, without
// trying every start within a run.
constexpr std::string_view kDeepseekLlm[] = {
    R"([\r\n])",
    R"(\s?[\p{Lu}\p{Ll}\p{Lt}]+)",
    R"(\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+)",
    R"((?<!\s)\s++$)",
    R"([\x{4E00}-\x{9FA5}\x{0800}-\x{4E00}\x{AC00}-\x{D7FF}]+)",
    R"(\p{N}+)"};

constexpr std::string_view kDeepseekCoder[] = {
    R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)",
    R"([\x{4E00}-\x{9FA5}\x{0800}-\x{4E00}\x{AC00}-\x{D7FF}]+)", R"(\p{N})"};

constexpr std::string_view kDeepseekV3[] = {
    R"(\p{N}{1,3})", R"([\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)",
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|)"
    R"([^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|)" WEFT_BLANK_TAIL};

constexpr std::string_view kGpt4o[] = {
    "[^\\r\\n\\p{L}\\p{N}]?" WEFT_UPPER "*" WEFT_LOWER "+(?:" WEFT_ANY_CASE_CONTRACTIONS
    ")?|"
    "[^\\r\\n\\p{L}\\p{N}]?" WEFT_UPPER "+" WEFT_LOWER "*(?:" WEFT_ANY_CASE_CONTRACTIONS
    ")?|"
    R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|)" WEFT_BLANK_TAIL};

constexpr std::string_view kTekken[] = {"[^\\r\\n\\p{L}\\p{N}]?" WEFT_UPPER "*" WEFT_LOWER
                                        "+|"
                                        "[^\\r\\n\\p{L}\\p{N}]?" WEFT_UPPER "+" WEFT_LOWER
                                        "*|"
                                        R"(\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|)" WEFT_BLANK_TAIL};

#undef WEFT_ANY_CASE_CONTRACTIONS
#undef WEFT_BLANK_TAIL
#undef WEFT_UPPER
#undef WEFT_LOWER

constexpr std::string_view kLlama3Ids[] = {"llama3",   "llama-v3",  "llama-bpe",
                                           "falcon3",  "falcon-h1", "pixtral",
                                           "midm-2.0", "lfm2",      "jina-v5-nano"};
constexpr std::string_view kSmaugIds[] = {"smaug-bpe"};
constexpr std::string_view kQwen2Ids[] = {"qwen2", "deepseek-r1-qwen", "hunyuan"};
constexpr std::string_view kStablelmIds[] = {"stablelm2"};
constexpr std::string_view kQwen35Ids[] = {"qwen35"};
constexpr std::string_view kGpt2Ids[] = {"gpt-2",      "phi-2",      "jina-es",    "jina-de",
                                         "jina-v1-en", "jina-v2-es", "jina-v2-de", "jina-v2-code",
                                         "mpt",        "olmo",       "roberta-bpe"};
constexpr std::string_view kDefaultIds[] = {"default"};
constexpr std::string_view kStarcoderIds[] = {"starcoder", "refact", "codeshell", "exaone",
                                              "minerva-7b"};
constexpr std::string_view kCommandRIds[] = {"command-r", "smollm"};
constexpr std::string_view kFalconIds[] = {"falcon"};
constexpr std::string_view kDeepseekLlmIds[] = {"deepseek-llm"};
constexpr std::string_view kDeepseekCoderIds[] = {"deepseek-coder"};
constexpr std::string_view kDeepseekV3Ids[] = {"deepseek-v3", "hunyuan-dense", "joyai-llm"};
constexpr std::string_view kGpt4oIds[] = {"gpt-4o", "llama4"};
constexpr std::string_view kTekkenIds[] = {"tekken"};

// Source: spec chapters I.1 (flags) and I.5 (expressions).
constexpr std::array<PreTokenizerRow, 15> kTable = {{
    {kLlama3Ids, kLlama3, /*ignore_merges=*/true, /*adds_bos=*/true, /*cleans_spaces=*/true},
    {.ids = kSmaugIds, .expressions = kLlama3, .cleans_spaces = true},
    {.ids = kQwen2Ids, .expressions = kQwen2},
    {.ids = kStablelmIds, .expressions = kQwen2, .cleans_spaces = true},
    {.ids = kQwen35Ids, .expressions = kQwen35},
    {.ids = kGpt2Ids, .expressions = kGpt2Alone, .cleans_spaces = true},
    {.ids = kDefaultIds, .expressions = kDefault, .cleans_spaces = true},
    {.ids = kStarcoderIds, .expressions = kStarcoder, .cleans_spaces = true},
    {.ids = kCommandRIds, .expressions = kStarcoder},
    {.ids = kFalconIds, .expressions = kFalcon, .cleans_spaces = true},
    {.ids = kDeepseekLlmIds, .expressions = kDeepseekLlm, .is_approximate = true},
    {.ids = kDeepseekCoderIds, .expressions = kDeepseekCoder},
    {.ids = kDeepseekV3Ids, .expressions = kDeepseekV3},
    {.ids = kGpt4oIds, .expressions = kGpt4o},
    {.ids = kTekkenIds, .expressions = kTekken, .ignore_merges = true, .adds_bos = true},
}};

}  // namespace

absl::Span<const PreTokenizerRow> PreTokenizerTable() { return kTable; }

const PreTokenizerRow* FindPreTokenizer(std::string_view id) {
  for (const PreTokenizerRow& row : kTable) {
    if (std::find(row.ids.begin(), row.ids.end(), id) != row.ids.end()) return &row;
  }
  return nullptr;
}

}  // namespace weft
