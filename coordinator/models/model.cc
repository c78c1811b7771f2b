#include "coordinator/models/model.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/absl_view.h"
#include "common/base/status_macros.h"
#include "coordinator/models/graph_context.h"
#include "coordinator/models/model_registry.h"

namespace weft {

Extents CacheSpec::PageExtents(int64_t pages) const { return {head, kPageTokens, n_head, pages}; }

absl::StatusOr<std::unique_ptr<Model>> Model::Create(const GgufFile& file) {
  const GgufMetadata& metadata = file.metadata();
  ASSIGN_OR_RETURN(const std::string_view name, metadata.String("general.architecture"));
  const Architecture* architecture = FindArchitecture(name);
  if (architecture == nullptr) {
    return absl::UnimplementedError(absl::StrCat("architecture '", AbslView(name.substr(0, 64)),
                                                 "' is not supported; supported are ",
                                                 absl::StrJoin(ArchitectureNames(), ", ")));
  }
  std::unique_ptr<Model> model(new Model(file, *architecture));
  ASSIGN_OR_RETURN(model->hyperparameters_, ReadCommonHyperparameters(metadata));
  Hyperparameters& hyperparameters = model->hyperparameters_;
  const GgufTensor* embedding = file.FindTensor("token_embd.weight");
  ASSIGN_OR_RETURN(hyperparameters.n_vocab,
                   VocabularySize(metadata, hyperparameters.architecture + ".vocab_size",
                                  embedding == nullptr ? 0 : embedding->layout.ne[1]));
  RETURN_IF_ERROR(architecture->refine(metadata, hyperparameters));
  RETURN_IF_ERROR(architecture->declare(hyperparameters, model->weights_));
  for (int64_t layer = 0; layer < hyperparameters.n_layer; ++layer) {
    const auto index = static_cast<int32_t>(layer);
    const int64_t heads = hyperparameters.n_head_kv[layer];
    model->caches_.push_back({index, false, hyperparameters.key_head, heads});
    model->caches_.push_back({index, true, hyperparameters.value_head, heads});
  }
  return model;
}

absl::StatusOr<ModelGraph> Model::BuildGraph(const GraphShape& shape) const {
  if (shape.tokens < 1 || shape.outputs < 0 || shape.outputs > shape.tokens ||
      shape.sequences < 1 || shape.pages_per_sequence < 1 || shape.pages < 2 ||
      shape.candidates < 0 || shape.changed < 0 || (shape.hidden && shape.candidates > 0) ||
      (shape.halves && shape.tokens % 2 != 0)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "graph of ", shape.tokens, " tokens", shape.halves ? " in halves, " : ", ", shape.outputs,
        " outputs, ", shape.sequences, " sequences and ", shape.pages, " pages"));
  }
  GraphContext context(hyperparameters_, weights_, caches_, shape);
  ModelGraph result;
  result.logits = architecture_.build(context);
  if (shape.outputs > 0 && shape.candidates > 0) {
    GraphBuilder& g = context.builder();
    const NodeId changed = shape.changed > 0 ? context.Input(ModelInput::kChanged) : kNoNode;
    const auto k = static_cast<int32_t>(std::min(shape.candidates, hyperparameters_.n_vocab));
    result.candidates = g.Name(g.SampleCandidates(result.logits, changed, k), "candidates");
    g.MarkOutput(result.candidates);
  } else if (shape.outputs > 0) {
    context.builder().MarkOutput(result.logits);
  }
  ASSIGN_OR_RETURN(result.graph, std::move(context.builder()).Finish());
  return result;
}

}  // namespace weft
