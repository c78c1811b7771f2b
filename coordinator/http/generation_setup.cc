#include "coordinator/http/generation_setup.h"

#include <chrono>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/escaped_text.h"
#include "common/base/status_macros.h"
#include "coordinator/http/api_error.h"

namespace weft {
namespace {

constexpr size_t kShownBytes = 64;

absl::StatusOr<std::shared_ptr<const DryBreakers>> MakeBreakers(
    const Tokenizer& tokenizer, const std::vector<std::string>& texts) {
  DryVocabulary vocabulary;
  vocabulary.size = tokenizer.vocabulary_size();
  vocabulary.piece = [&](int32_t id) { return tokenizer.Piece(id, true); };
  vocabulary.encode = [&](std::string_view text) {
    return tokenizer.Encode(text, {.add_special = false, .parse_special = false});
  };
  absl::StatusOr<DryBreakers> breakers = ResolveDryBreakers(texts, vocabulary);
  if (!breakers.ok()) return OfField("dry_sequence_breakers", breakers.status());
  return std::make_shared<const DryBreakers>(*std::move(breakers));
}

}  // namespace

absl::Status CheckModel(const ServedModel& model, const std::string& name) {
  if (name.empty() || name == model.name) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("model: there is no '", EscapedText(name, kShownBytes),
                                          "' here, only '", model.name, "'"));
}

absl::StatusOr<std::vector<int32_t>> PromptTokens(const ServedModel& model,
                                                  const PromptInput& input,
                                                  const std::string& field) {
  const Tokenizer& tokenizer = *model.tokenizer;
  std::vector<int32_t> tokens;
  if (const auto* text = std::get_if<std::string>(&input)) {
    absl::StatusOr<std::vector<int32_t>> encoded = tokenizer.Encode(*text, EncodeOptions{});
    if (!encoded.ok()) return OfField(field, encoded.status());
    tokens = *std::move(encoded);
    if (tokens.empty() && tokenizer.bos() >= 0) tokens.push_back(tokenizer.bos());
  } else {
    tokens = std::get<std::vector<int32_t>>(input);
    for (const int32_t id : tokens) {
      if (id < tokenizer.vocabulary_size()) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          field, ": token ", id, " is outside the vocabulary of ", tokenizer.vocabulary_size()));
    }
  }
  if (tokens.empty()) return absl::InvalidArgumentError(absl::StrCat(field, ": has no tokens"));
  const auto count = static_cast<int64_t>(tokens.size());
  if (count > model.engine->context()) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, ": ", count, " tokens, the context holds ", model.engine->context()));
  }
  return tokens;
}

absl::StatusOr<GenerationSetup> GenerationSetup::Create(const ServedModel& model,
                                                        const GenerationFields& fields,
                                                        const std::string& client) {
  GenerationSetup setup(model, fields);
  setup.sampler_ = fields.sampler;
  for (const TokenBias& bias : fields.sampler.logit_bias) {
    if (bias.id < model.tokenizer->vocabulary_size()) continue;
    return absl::InvalidArgumentError(absl::StrCat("logit_bias.", bias.id,
                                                   ": is outside the vocabulary of ",
                                                   model.tokenizer->vocabulary_size()));
  }
  if (DryChangesLogits(setup.sampler_)) {
    if (fields.dry_breakers || setup.sampler_.dry_breakers == nullptr) {
      ASSIGN_OR_RETURN(
          setup.sampler_.dry_breakers,
          MakeBreakers(*model.tokenizer, fields.dry_breakers.value_or(DefaultDryBreakers())));
    }
  }
  RETURN_IF_ERROR(CheckSamplerOptions(setup.sampler_));
  setup.seed_ = fields.seed.value_or(model.ids->Next());
  setup.client_ = client;
  setup.deadline_ = Clock::TimePoint::max();
  if (fields.timeout_seconds > 0) {
    setup.deadline_ =
        model.clock->Now() + std::chrono::duration_cast<Clock::TimePoint::duration>(
                                 std::chrono::duration<double>(fields.timeout_seconds));
  }
  return setup;
}

absl::StatusOr<ConstraintMaker> GenerationSetup::Constraint() const {
  const bool grammar = fields_->format == OutputFormat::kGrammar;
  const char* field = grammar ? "grammar" : "response_format";
  if (fields_->format == OutputFormat::kText) return ConstraintMaker();
  if (model_->constraints == nullptr) {
    return OfField(field, absl::UnimplementedError("this server constrains no output"));
  }
  absl::StatusOr<ConstraintMaker> make = grammar ? model_->constraints->OfGrammar(fields_->grammar)
                                         : fields_->format == OutputFormat::kJsonSchema
                                             ? model_->constraints->OfSchema(fields_->schema)
                                             : model_->constraints->OfJsonObject();
  if (!make.ok()) return OfField(field, make.status());
  return [field, make = *std::move(make)]() -> absl::StatusOr<std::unique_ptr<TokenConstraint>> {
    absl::StatusOr<std::unique_ptr<TokenConstraint>> made = make();
    if (!made.ok()) return OfField(field, made.status());
    return made;
  };
}

GenerationRequest GenerationSetup::Request(std::vector<int32_t> prompt, int64_t choice) const {
  GenerationRequest request;
  request.prompt = std::move(prompt);
  request.sampler = sampler_;
  request.sampler.seed = seed_ + static_cast<uint64_t>(choice);
  request.max_tokens = fields_->max_tokens;
  request.stop = fields_->stop;
  request.ignore_end = fields_->ignore_end;
  request.log_probabilities = fields_->log_probabilities;
  request.deadline = deadline_;
  request.client = client_;
  return request;
}

}  // namespace weft
