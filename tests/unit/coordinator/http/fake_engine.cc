#include "tests/unit/coordinator/http/fake_engine.h"

#include <algorithm>
#include <chrono>

#include "common/gguf/gguf_file.h"
#include "gtest/gtest.h"
#include "tests/support/golden_model.h"

namespace weft {

absl::StatusOr<std::shared_ptr<GenerationStream>> FakeEngine::Submit(GenerationRequest request) {
  Play play;
  GenerationRequest* kept = nullptr;
  auto stream = std::make_shared<GenerationStream>([this] { changed_.NotifyAll(); });
  {
    MutexLock lock(mutex_);
    if (refuse_after_ == 0) {
      refuse_after_ = -1;
      return refusal_;
    }
    if (refuse_after_ > 0) --refuse_after_;
    requests_.push_back(std::make_unique<GenerationRequest>(std::move(request)));
    streams_.push_back(stream);
    kept = requests_.back().get();
    play = play_;
    changed_.NotifyAll();
  }
  if (play) play(*kept, *stream);
  return stream;
}

ServingState FakeEngine::state() const {
  MutexLock lock(mutex_);
  return state_;
}

void FakeEngine::SetState(const ServingState& state) {
  MutexLock lock(mutex_);
  state_ = state;
}

void FakeEngine::SetPlay(Play play) {
  MutexLock lock(mutex_);
  play_ = std::move(play);
}

void FakeEngine::RefuseAfter(int64_t after, absl::Status status) {
  MutexLock lock(mutex_);
  refuse_after_ = after;
  refusal_ = std::move(status);
}

int64_t FakeEngine::submitted() const {
  MutexLock lock(mutex_);
  return static_cast<int64_t>(streams_.size());
}

GenerationRequest& FakeEngine::request(int64_t i) {
  MutexLock lock(mutex_);
  return *requests_.at(i);
}

GenerationStream& FakeEngine::stream(int64_t i) {
  MutexLock lock(mutex_);
  return *streams_.at(i);
}

int64_t FakeEngine::cancelled() const {
  MutexLock lock(mutex_);
  return std::count_if(streams_.begin(), streams_.end(),
                       [](const auto& stream) { return stream->cancelled(); });
}

bool FakeEngine::Await(const std::function<bool()>& condition) const {
  const SystemClock clock;
  const Clock::TimePoint deadline = clock.Now() + std::chrono::seconds(10);
  while (!condition()) {
    if (clock.Now() > deadline) return false;
    MutexLock lock(mutex_);
    changed_.WaitUntil(mutex_, clock.Now() + std::chrono::milliseconds(5));
  }
  return true;
}

FakeEngine::Play Says(std::vector<std::string> texts, FinishReason reason) {
  return [texts = std::move(texts), reason](const GenerationRequest& request,
                                            GenerationStream& stream) {
    for (const std::string& text : texts) stream.Push({text, {}});
    GenerationSummary summary;
    summary.reason = reason;
    summary.prompt_tokens = static_cast<int64_t>(request.prompt.size());
    summary.reused_tokens = 1;
    summary.generated_tokens = static_cast<int64_t>(texts.size());
    stream.Finish(absl::OkStatus(), summary);
  };
}

namespace {

// Streams join pieces that nobody took; ends of those that must stay apart.
constexpr char kBetweenPieces = '\x1e';

class FakeReader final : public ReplyReader {
 public:
  std::vector<ReplyEvent> Append(std::string_view text) override {
    std::vector<ReplyEvent> events;
    while (!text.empty()) {
      const size_t end = std::min(text.find(kBetweenPieces), text.size());
      events.push_back(EventOf(text.substr(0, end)));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    return events;
  }
  std::vector<ReplyEvent> Finish() override { return {ReplyEvent()}; }

 private:
  ReplyEvent EventOf(std::string_view text) {
    ReplyEvent event;
    const std::string rest(text.substr(std::min<size_t>(2, text.size())));
    if (text.rfind("R:", 0) == 0) {
      event.kind = ReplyEvent::Kind::kReasoning;
      event.text = rest;
    } else if (text.rfind("C:", 0) == 0) {
      event.kind = ReplyEvent::Kind::kCallBegin;
      event.index = calls_++;
      event.text = rest;
    } else if (text.rfind("A:", 0) == 0) {
      event.kind = ReplyEvent::Kind::kCallArguments;
      event.index = calls_ - 1;
      event.text = rest;
    } else {
      event.kind = ReplyEvent::Kind::kContent;
      event.text = std::string(text);
    }
    return event;
  }

  int calls_ = 0;
};

}  // namespace

absl::StatusOr<ChatPrompt> FakeFormat::Prompt(const ChatBody& request) const {
  if (request.tool_choice.kind == ToolChoice::Kind::kRequired) {
    return absl::UnimplementedError("tool_choice: cannot be enforced");
  }
  std::string text;
  for (const Json& message : request.messages) {
    text += "<" + message["role"].get<std::string>() + ">" + message["content"].get<std::string>();
  }
  ChatPrompt prompt;
  absl::StatusOr<std::vector<int32_t>> tokens = tokenizer_.Encode(text, EncodeOptions{});
  if (!tokens.ok()) return tokens.status();
  prompt.tokens = *std::move(tokens);
  prompt.stop = {"<user>"};
  prompt.make_reader = [] { return std::make_unique<FakeReader>(); };
  return prompt;
}

std::unique_ptr<Tokenizer> DemoTokenizer() {
  auto file = GgufFile::Open(TestDataFolder() + "/models/shakespeare/shakespeare-q4_0.gguf");
  EXPECT_TRUE(file.ok()) << file.status();
  auto tokenizer = Tokenizer::Create((*file)->metadata());
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return *std::move(tokenizer);
}

}  // namespace weft
