#include "coordinator/serving/admission_queue.h"

#include <utility>

namespace weft {

bool AdmissionQueue::Add(std::unique_ptr<Sequence>& sequence) {
  if (size_ >= most_) return false;
  const std::string& client = sequence->request().client;
  Line& line = lines_[client];
  if (line.empty()) turns_.push_back(client);
  line.push_back(std::move(sequence));
  ++size_;
  return true;
}

Sequence* AdmissionQueue::Next() {
  return turns_.empty() ? nullptr : lines_.find(turns_.front())->second.front().get();
}

std::unique_ptr<Sequence> AdmissionQueue::Take() {
  const auto line = lines_.find(turns_.front());
  std::unique_ptr<Sequence> taken = std::move(line->second.front());
  line->second.pop_front();
  --size_;
  if (line->second.empty()) {
    lines_.erase(line);
    turns_.pop_front();
  } else {
    turns_.splice(turns_.end(), turns_, turns_.begin());
  }
  return taken;
}

std::vector<std::unique_ptr<Sequence>> AdmissionQueue::TakeIf(
    absl::FunctionRef<bool(const Sequence&)> wanted) {
  std::vector<std::unique_ptr<Sequence>> taken;
  for (auto turn = turns_.begin(); turn != turns_.end();) {
    Line& line = lines_.find(*turn)->second;
    for (std::unique_ptr<Sequence>& sequence : line) {
      if (wanted(*sequence)) taken.push_back(std::move(sequence));
    }
    std::erase(line, nullptr);
    if (line.empty()) {
      lines_.erase(*turn);
      turn = turns_.erase(turn);
    } else {
      ++turn;
    }
  }
  size_ -= static_cast<int64_t>(taken.size());
  return taken;
}

}  // namespace weft
