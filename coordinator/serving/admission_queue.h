// Requests that wait for a slot: a bounded number, clients in turns, each client's in order.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "coordinator/serving/sequence.h"

namespace weft {

class AdmissionQueue {
 public:
  explicit AdmissionQueue(int64_t most) : most_(most) {}

  // False, and nothing happens, if too many wait.
  bool Add(std::unique_ptr<Sequence>& sequence);
  // The next one, which stays; null if none waits.
  Sequence* Next();
  // Takes the one that Next() gave; its client's turn is over.
  std::unique_ptr<Sequence> Take();
  // Takes those that `wanted` picks, in any order.
  std::vector<std::unique_ptr<Sequence>> TakeIf(absl::FunctionRef<bool(const Sequence&)> wanted);

  int64_t size() const { return size_; }

 private:
  using Line = std::deque<std::unique_ptr<Sequence>>;

  const int64_t most_;
  int64_t size_ = 0;
  absl::flat_hash_map<std::string, Line> lines_;  // none is empty
  std::list<std::string> turns_;                  // clients that wait, the next first
};

}  // namespace weft
