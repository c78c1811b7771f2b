// An engine that says what a test tells it to, a chat format that is easy to read, and all that a
// server needs around them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/mutex.h"
#include "coordinator/http/dispatcher.h"
#include "coordinator/http/http_server.h"
#include "coordinator/http/served_model.h"
#include "coordinator/http/text_engine.h"
#include "coordinator/tokenizer/tokenizer.h"

namespace weft {

class FakeEngine final : public TextEngine {
 public:
  // What a continuation says, called in Submit.
  using Play = std::function<void(const GenerationRequest&, GenerationStream&)>;

  FakeEngine() { state_.ready = true; }

  absl::StatusOr<std::shared_ptr<GenerationStream>> Submit(GenerationRequest request) override;
  ServingState state() const override;
  int64_t context() const override { return 4096; }

  void SetState(const ServingState& state);
  // Null: continuations say nothing until a test does.
  void SetPlay(Play play);
  // The status of the next Submit but `after`.
  void RefuseAfter(int64_t after, absl::Status status);

  // What was submitted, and its streams; in order.
  int64_t submitted() const;
  GenerationRequest& request(int64_t i);
  GenerationStream& stream(int64_t i);
  // How many streams were cancelled.
  int64_t cancelled() const;
  // Whether `condition` came true within ten seconds.
  bool Await(const std::function<bool()>& condition) const;

 private:
  mutable Mutex mutex_;
  mutable CondVar changed_;
  ServingState state_ ABSL_GUARDED_BY(mutex_);
  Play play_ ABSL_GUARDED_BY(mutex_);
  int64_t refuse_after_ ABSL_GUARDED_BY(mutex_) = -1;
  absl::Status refusal_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<GenerationRequest>> requests_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<GenerationStream>> streams_ ABSL_GUARDED_BY(mutex_);
};

// Pushes these texts, one piece each, and ends.
FakeEngine::Play Says(std::vector<std::string> texts,
                      FinishReason reason = FinishReason::kEndOfText);

// Prompts are "<role>content" of each message. Of replies, a piece "R:x" is reasoning, "C:f" begins
// a call of f, "A:x" is a part of its arguments. A piece may end with \x1e, so that it stays one.
class FakeFormat final : public ChatFormat {
 public:
  explicit FakeFormat(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}
  absl::StatusOr<ChatPrompt> Prompt(const ChatBody& request) const override;

 private:
  const Tokenizer& tokenizer_;
};

// The tokenizer of the demo model.
std::unique_ptr<Tokenizer> DemoTokenizer();

// A client that stays.
class PatientClient final : public ClientWatch {
 public:
  std::shared_ptr<void> OnLeft(std::function<void()>) override { return nullptr; }
};

}  // namespace weft
