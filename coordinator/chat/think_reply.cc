// <think>thoughts</think> at the start of a reply.
#include <utility>

#include "coordinator/chat/marker_scan.h"
#include "coordinator/chat/reply_format.h"
#include "coordinator/chat/reply_markers.h"

namespace weft {
namespace {

constexpr std::string_view kOpen[] = {marker::kThink};
constexpr std::string_view kClose[] = {marker::kEndThink};

class ThinkParser final : public FormatParser {
 public:
  ThinkParser(std::unique_ptr<FormatParser> inner, bool opened)
      : inner_(std::move(inner)), state_(opened ? State::kThoughts : State::kStart) {}

  void Consume(std::string* text, bool final, ReplySink* sink) override {
    if (state_ == State::kStart) Start(text, final);
    if (state_ == State::kThoughts) Thoughts(text, final, sink);
    if (state_ == State::kRest) inner_->Consume(text, final, sink);
  }

 private:
  enum class State { kStart, kThoughts, kRest };

  // White space may stand before the marker. More than this is text.
  static constexpr size_t kMaxSpace = 64;

  void Start(std::string* text, bool final) {
    const size_t begin = text->find_first_not_of(" \t\r\n");
    if (begin == std::string::npos) {
      if (final || text->size() > kMaxSpace) state_ = State::kRest;
      return;
    }
    const std::string_view rest = std::string_view(*text).substr(begin);
    if (begin <= kMaxSpace && rest.starts_with(kOpen[0])) {
      text->erase(0, begin + kOpen[0].size());
      state_ = State::kThoughts;
    } else if (final || begin > kMaxSpace || !MayBe(rest, kOpen[0])) {
      state_ = State::kRest;
    }
  }

  void Thoughts(std::string* text, bool final, ReplySink* sink) {
    // A model may open what the prompt has opened already.
    if (first_ && !final && text->size() < kOpen[0].size() && MayBe(*text, kOpen[0])) return;
    if (first_ && text->starts_with(kOpen[0])) text->erase(0, kOpen[0].size());
    first_ = false;
    if (const auto hit = FindMarker(*text, kClose)) {
      sink->Reasoning(std::string_view(*text).substr(0, hit->position));
      sink->EndThoughts();
      text->erase(0, hit->position + kClose[0].size());
      state_ = State::kRest;
      return;
    }
    const size_t safe = final ? text->size() : BytesBeforeMarker(*text, kClose);
    sink->Reasoning(std::string_view(*text).substr(0, safe));
    text->erase(0, safe);
  }

  const std::unique_ptr<FormatParser> inner_;
  State state_;
  bool first_ = true;  // no thought was taken yet
};

}  // namespace

std::unique_ptr<FormatParser> MakeThinkParser(std::unique_ptr<FormatParser> inner, bool opened) {
  return std::make_unique<ThinkParser>(std::move(inner), opened);
}

}  // namespace weft
