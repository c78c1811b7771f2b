// What the handlers need of an engine.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/serving/generation_request.h"
#include "coordinator/serving/generation_stream.h"
#include "coordinator/serving/inference_loop.h"
#include "coordinator/serving/serving_state.h"

namespace weft {

// Any thread.
class TextEngine {
 public:
  virtual ~TextEngine() = default;
  // As InferenceLoop::Submit.
  virtual absl::StatusOr<std::shared_ptr<GenerationStream>> Submit(GenerationRequest request) = 0;
  virtual ServingState state() const = 0;
  // Most tokens of prompt and continuation together.
  virtual int64_t context() const = 0;
};

// That of an InferenceLoop, which outlives it.
class LoopEngine final : public TextEngine {
 public:
  explicit LoopEngine(InferenceLoop& loop) : loop_(loop) {}

  absl::StatusOr<std::shared_ptr<GenerationStream>> Submit(GenerationRequest request) override {
    return loop_.Submit(std::move(request));
  }
  ServingState state() const override { return loop_.state(); }
  int64_t context() const override { return loop_.context(); }

 private:
  InferenceLoop& loop_;
};

}  // namespace weft
