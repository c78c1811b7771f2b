#include "coordinator/cli/synth/synth_plan.h"

#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/status_macros.h"
#include "coordinator/cli/synth/synth_tokenizer.h"

namespace weft {
namespace {

constexpr double kLogitDeviation = 2.0;
constexpr double kNormDeviation = 0.1;
constexpr double kBiasDeviation = 0.1;

// What distinguishes the architectures here.
struct Architecture {
  std::string_view name;
  bool head_norms;     // attn_q_norm, attn_k_norm
  bool biases_always;  // of Q, K, V
  bool biases_allowed;
  bool experts_required;
  bool experts_allowed;
  double rope_base;
  double norm_epsilon;
};

constexpr Architecture kArchitectures[] = {
    {"llama", false, false, true, false, true, 1e4, 1e-5},
    {"qwen2", false, true, true, false, false, 1e6, 1e-6},
    {"qwen3", true, false, false, false, false, 1e6, 1e-6},
    {"qwen3moe", true, false, false, true, true, 1e6, 1e-6},
};

absl::StatusOr<const Architecture*> FindArchitecture(std::string_view name) {
  for (const Architecture& row : kArchitectures) {
    if (row.name == name) return &row;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("architecture '", AbslView(name), "': want llama, qwen2, qwen3 or qwen3moe"));
}

// The types of the matrices. file_type is the informational key general.file_type.
struct TypePlan {
  std::string name;
  DType matrices = DType::kF32;
  bool embedding_q6 = false;
  bool mixed = false;  // half of attn_v and ffn_down in Q6_K
  uint32_t file_type = 0;
};

// general.file_type of each type with a codec.
uint32_t FileType(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return 1;
    case DType::kQ4_0:
      return 2;
    case DType::kQ4_1:
      return 3;
    case DType::kQ8_0:
      return 7;
    case DType::kQ5_0:
      return 8;
    case DType::kQ5_1:
      return 9;
    case DType::kQ2_K:
      return 10;
    case DType::kQ3_K:
      return 11;
    case DType::kQ4_K:
      return 14;
    case DType::kQ5_K:
      return 16;
    case DType::kQ6_K:
      return 18;
    case DType::kIQ4_NL:
      return 25;
    case DType::kIQ4_XS:
      return 30;
    case DType::kBF16:
      return 32;
    case DType::kMXFP4:
      return 38;
    default:
      return 0;
  }
}

absl::StatusOr<TypePlan> ParseType(std::string_view name) {
  if (absl::EqualsIgnoreCase(AbslView(name), "Q4_K_M")) {
    return TypePlan{"Q4_K_M", DType::kQ4_K, true, true, 15};
  }
  const std::optional<DType> dtype = DTypeFromName(name);
  if (!dtype.has_value() || !GetDTypeInfo(*dtype).codec) {
    std::string known;
    for (const DTypeInfo& info : AllDTypes()) {
      if (info.codec) absl::StrAppend(&known, AbslView(info.name), ", ");
    }
    return absl::InvalidArgumentError(
        absl::StrCat("type '", AbslView(name), "': want ", known, "or Q4_K_M"));
  }
  return TypePlan{std::string(DTypeName(*dtype)), *dtype, *dtype == DType::kQ4_0, false,
                  FileType(*dtype)};
}

struct Bound {
  std::string_view name;
  int64_t value;
  int64_t low;
  int64_t high;
};

// The limits are those of the loader (spec G.2), and of sizes that no machine holds.
absl::Status CheckShape(const Architecture& architecture, const SynthShape& shape) {
  constexpr int64_t kLargestWidth = int64_t{1} << 18;
  const bool experts = architecture.experts_required || shape.expert_count > 0;
  const Bound bounds[] = {
      {"embedding length", shape.embedding_length, 1, kLargestWidth},
      {"layer count", shape.layer_count, 1, 512},
      {"head count", shape.head_count, 1, 4096},
      {"KV head count", shape.head_count_kv, 1, shape.head_count},
      {"feed-forward length", shape.feed_forward_length, 1, kLargestWidth},
      {"vocabulary size", shape.vocabulary_size, kSmallestSynthVocabulary, kLargestSynthVocabulary},
      {"head length", shape.head_length, 2, 4096},
      {"expert count", shape.expert_count, experts ? 1 : 0,
       architecture.experts_allowed ? 1024 : 0},
      {"used expert count", shape.expert_used_count, experts ? 1 : 0, shape.expert_count},
      {"expert feed-forward length", shape.expert_feed_forward_length, 0,
       architecture.experts_required ? kLargestWidth : 0},
      {"context length", shape.context_length, 1, int64_t{1} << 30},
  };
  for (const Bound& bound : bounds) {
    if (bound.value < bound.low || bound.value > bound.high) {
      return absl::InvalidArgumentError(absl::StrCat(AbslView(bound.name), " ", bound.value, " of ",
                                                     AbslView(architecture.name), " is not within ",
                                                     bound.low, " to ", bound.high));
    }
  }
  if (shape.head_count % shape.head_count_kv != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        shape.head_count, " heads are not a multiple of ", shape.head_count_kv, " KV heads"));
  }
  if (shape.head_length % 2 != 0) {
    return absl::InvalidArgumentError(absl::StrCat("head length ", shape.head_length, " is odd"));
  }
  return absl::OkStatus();
}

absl::Status AddMetadata(const SynthModel& model, const Architecture& architecture,
                         const TypePlan& types, GgufMetadata* metadata) {
  const SynthShape& shape = model.shape;
  std::vector<std::pair<std::string, GgufValue>> entries;
  const auto add = [&](std::string_view key, GgufValue value) {
    entries.emplace_back(std::string(key), std::move(value));
  };
  const auto add_count = [&](std::string_view key, int64_t value) {
    add(absl::StrCat(AbslView(architecture.name), ".", AbslView(key)),
        static_cast<uint32_t>(value));
  };
  const auto add_float = [&](std::string_view key, double value) {
    add(absl::StrCat(AbslView(architecture.name), ".", AbslView(key)), static_cast<float>(value));
  };
  add("general.architecture", std::string(architecture.name));
  add("general.type", std::string("model"));
  add("general.name", absl::StrCat("Random ", AbslView(architecture.name), " ", types.name));
  add("general.file_type", types.file_type);
  add("general.quantization_version", uint32_t{2});
  add_count("block_count", shape.layer_count);
  add_count("context_length", shape.context_length);
  add_count("embedding_length", shape.embedding_length);
  add_count("feed_forward_length", shape.feed_forward_length);
  add_count("attention.head_count", shape.head_count);
  add_count("attention.head_count_kv", shape.head_count_kv);
  add_count("attention.key_length", shape.head_length);
  add_count("attention.value_length", shape.head_length);
  add_count("rope.dimension_count", shape.head_length);
  add_float("rope.freq_base", architecture.rope_base);
  add_float("attention.layer_norm_rms_epsilon", architecture.norm_epsilon);
  add_count("vocab_size", shape.vocabulary_size);
  if (shape.expert_count > 0) {
    add_count("expert_count", shape.expert_count);
    add_count("expert_used_count", shape.expert_used_count);
  }
  if (architecture.experts_required) {
    add_count("expert_feed_forward_length", shape.expert_feed_forward_length > 0
                                                ? shape.expert_feed_forward_length
                                                : shape.feed_forward_length);
  }
  for (auto& [key, value] : entries) RETURN_IF_ERROR(metadata->Add(key, std::move(value)));
  ASSIGN_OR_RETURN(const SynthVocabulary vocabulary, MakeSynthVocabulary(shape.vocabulary_size));
  return AddTokenizerMetadata(vocabulary, metadata);
}

// Collects tensors; the first error is kept and ends it.
class TensorLister {
 public:
  TensorLister(const SynthModel& model, const Architecture& architecture, const TypePlan& types)
      : shape_(model.shape), architecture_(architecture), types_(types) {
    biases_ = architecture.biases_always || (architecture.biases_allowed && model.attention_bias);
    expert_width_ = shape_.expert_feed_forward_length > 0 ? shape_.expert_feed_forward_length
                                                          : shape_.feed_forward_length;
    branch_ = 1.0 / std::sqrt(2.0 * static_cast<double>(shape_.layer_count));
  }

  absl::StatusOr<std::vector<SynthTensor>> List(bool tied_output) {
    AddVocabularyMatrix("token_embd.weight");
    for (int64_t layer = 0; layer < shape_.layer_count; ++layer) {
      prefix_ = absl::StrCat("blk.", layer, ".");
      AddAttention(layer % 2 == 1);
      AddFeedForward(layer % 2 == 1);
    }
    prefix_.clear();
    AddNorm("output_norm.weight", shape_.embedding_length);
    if (!tied_output) AddVocabularyMatrix("output.weight");
    if (!status_.ok()) return status_;
    return std::move(tensors_);
  }

 private:
  void Add(std::string_view name, DType dtype, const Extents& ne, double mean, double deviation) {
    if (!status_.ok()) return;
    SynthTensor tensor;
    tensor.name = absl::StrCat(prefix_, AbslView(name));
    const absl::StatusOr<TensorLayout> layout = PackedLayout(dtype, ne);
    if (!layout.ok()) {
      status_ =
          absl::InvalidArgumentError(absl::StrCat(tensor.name, ": ", layout.status().message()));
      return;
    }
    tensor.layout = *layout;
    tensor.mean = mean;
    tensor.deviation = deviation;
    tensors_.push_back(std::move(tensor));
  }

  void AddNorm(std::string_view name, int64_t length) {
    Add(name, DType::kF32, {length, 1, 1, 1}, 1.0, kNormDeviation);
  }

  void AddBias(std::string_view name, int64_t length) {
    Add(name, DType::kF32, {length, 1, 1, 1}, 0.0, kBiasDeviation);
  }

  // `scale` is the deviation of an output whose inputs have deviation 1.
  void AddMatrix(std::string_view name, DType dtype, const Extents& ne, double scale) {
    Add(name, dtype, ne, 0.0, scale / std::sqrt(static_cast<double>(ne[0])));
  }

  void AddVocabularyMatrix(std::string_view name) {
    const bool q6 =
        types_.embedding_q6 && RowBytes(DType::kQ6_K, shape_.embedding_length).has_value();
    AddMatrix(name, q6 ? DType::kQ6_K : types_.matrices,
              {shape_.embedding_length, shape_.vocabulary_size, 1, 1}, kLogitDeviation);
  }

  DType LargerType(bool odd_layer) const {
    return types_.mixed && odd_layer ? DType::kQ6_K : types_.matrices;
  }

  void AddAttention(bool odd_layer) {
    const int64_t d = shape_.embedding_length;
    const int64_t q_rows = shape_.head_length * shape_.head_count;
    const int64_t kv_rows = shape_.head_length * shape_.head_count_kv;
    AddNorm("attn_norm.weight", d);
    AddMatrix("attn_q.weight", types_.matrices, {d, q_rows, 1, 1}, 1.0);
    AddMatrix("attn_k.weight", types_.matrices, {d, kv_rows, 1, 1}, 1.0);
    AddMatrix("attn_v.weight", LargerType(odd_layer), {d, kv_rows, 1, 1}, 1.0);
    AddMatrix("attn_output.weight", types_.matrices, {q_rows, d, 1, 1}, branch_);
    if (biases_) {
      AddBias("attn_q.bias", q_rows);
      AddBias("attn_k.bias", kv_rows);
      AddBias("attn_v.bias", kv_rows);
    }
    if (architecture_.head_norms) {
      AddNorm("attn_q_norm.weight", shape_.head_length);
      AddNorm("attn_k_norm.weight", shape_.head_length);
    }
  }

  void AddFeedForward(bool odd_layer) {
    const int64_t d = shape_.embedding_length;
    const int64_t experts = shape_.expert_count;
    const int64_t ff = experts > 0 ? expert_width_ : shape_.feed_forward_length;
    const std::string_view suffix = experts > 0 ? "_exps.weight" : ".weight";
    const int64_t depth = experts > 0 ? experts : 1;
    const auto name = [&](std::string_view part) {
      return absl::StrCat(AbslView(part), AbslView(suffix));
    };
    AddNorm("ffn_norm.weight", d);
    if (experts > 0) AddMatrix("ffn_gate_inp.weight", DType::kF32, {d, experts, 1, 1}, 1.0);
    AddMatrix(name("ffn_gate"), types_.matrices, {d, ff, depth, 1}, 1.0);
    AddMatrix(name("ffn_up"), types_.matrices, {d, ff, depth, 1}, 1.0);
    // silu(gate) * up has a deviation of about 0.6.
    AddMatrix(name("ffn_down"), LargerType(odd_layer), {ff, d, depth, 1}, branch_ / 0.6);
  }

  const SynthShape& shape_;
  const Architecture& architecture_;
  const TypePlan& types_;
  bool biases_ = false;
  int64_t expert_width_ = 0;
  double branch_ = 0;  // scale of what adds to the residual stream
  std::string prefix_;
  absl::Status status_;
  std::vector<SynthTensor> tensors_;
};

}  // namespace

absl::StatusOr<SynthShape> NamedSynthShape(std::string_view name) {
  const std::string lower = absl::AsciiStrToLower(AbslView(name));
  if (lower == "160m") return SynthShape{768, 12, 12, 4, 2048, 32000, 64};
  if (lower == "1b") return SynthShape{2048, 16, 32, 8, 8192, 128256, 64};
  if (lower == "3b") return SynthShape{3072, 28, 24, 8, 8192, 128256, 128};
  if (lower == "8b") return SynthShape{4096, 32, 32, 8, 14336, 128256, 128};
  return absl::InvalidArgumentError(
      absl::StrCat("shape '", AbslView(name), "': want 160m, 1b, 3b or 8b"));
}

absl::StatusOr<SynthPlan> MakeSynthPlan(const SynthModel& model) {
  ASSIGN_OR_RETURN(const Architecture* const architecture, FindArchitecture(model.architecture));
  ASSIGN_OR_RETURN(const TypePlan types, ParseType(model.type));
  RETURN_IF_ERROR(CheckShape(*architecture, model.shape));
  if (model.attention_bias && !architecture->biases_allowed) {
    return absl::InvalidArgumentError(
        absl::StrCat(model.architecture, " has no biases of Q, K and V"));
  }
  SynthPlan plan;
  RETURN_IF_ERROR(AddMetadata(model, *architecture, types, &plan.metadata));
  ASSIGN_OR_RETURN(plan.tensors, TensorLister(model, *architecture, types).List(model.tied_output));
  return plan;
}

}  // namespace weft
