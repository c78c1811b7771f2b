#include "tests/support/fake_backend.h"

#include <chrono>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/cpu/reference/evaluate_node.h"
#include "common/device/slice_check.h"
#include "tests/support/fake_memory.h"

namespace weft {
namespace {

// The state of an event. Shared, because a queue may hold a point of an event that was destroyed.
struct EventState {
  Mutex mutex;
  CondVar changed;
  uint64_t recorded = 0;   // points asked for
  uint64_t completed = 0;  // points reached
  absl::Status status;     // of the work before the last point

  absl::Status Await(uint64_t point) {
    MutexLock lock(mutex);
    while (completed < point) changed.Wait(mutex);
    return status;
  }
  uint64_t Last() {
    MutexLock lock(mutex);
    return recorded;
  }
};

class FakeEvent final : public Event {
 public:
  absl::Status Synchronize() override { return state->Await(state->Last()); }
  const std::shared_ptr<EventState> state = std::make_shared<EventState>();
};

class FakeExecutable final : public Executable {
 public:
  explicit FakeExecutable(const GraphSlice& slice)
      : graph(*slice.graph),
        nodes(slice.nodes.begin(), slice.nodes.end()),
        places(slice.places.begin(), slice.places.end()) {}
  const Graph& graph;
  const std::vector<NodeId> nodes;
  const std::vector<TensorPlace> places;
};

// Makes a result wrong, but finite where it was.
void Corrupt(const TensorLayout& layout, uint8_t* data) {
  const int64_t bytes = ByteExtent(layout).value_or(0);
  if (layout.dtype != DType::kF32) {
    if (bytes > 0) data[0] ^= 1;
    return;
  }
  constexpr uint8_t kSign = 0x80;
  for (int64_t i = 3; i < bytes; i += 4) data[i] ^= kSign;
}

// Values beside the right ones.
void RoundOtherwise(const TensorLayout& layout, uint8_t* data) {
  const int64_t count = layout.dtype == DType::kF32 ? ElementCount(layout) : 0;
  for (int64_t i = 0; i < count; ++i) {
    uint32_t bits = 0;
    std::memcpy(&bits, data + 4 * i, sizeof(bits));
    bits += static_cast<uint32_t>(i % layout.ne[0]);
    std::memcpy(data + 4 * i, &bits, sizeof(bits));
  }
}

// Plain copies of the operands of one node.
class Operands {
 public:
  Operands(const FakeDevice& device, const Graph& graph, absl::Span<const TensorPlace> places)
      : device_(device), graph_(graph), places_(places), data_(places.size()) {}

  absl::Status Evaluate(NodeId id) {
    const Node& node = graph_.node(id);
    for (const NodeId source : node.sources) RETURN_IF_ERROR(Load(source));
    if (GetOpInfo(node.op).writes_source) {
      data_[Index(id)] = data_[Index(node.sources[0])];
    } else {
      // Poisoned, so that an element that the kernel forgets shows.
      copies_.emplace_back(static_cast<size_t>(Bytes(id)), uint8_t{0xFF});
      data_[Index(id)] = copies_.back().data();
    }
    RETURN_IF_ERROR(EvaluateNode(graph_, id, data_));
    if (device_.Corrupts(graph_, id)) Corrupt(node.layout, data_[Index(id)]);
    const auto& rounds_otherwise = device_.options().rounds_otherwise;
    if (rounds_otherwise && rounds_otherwise(graph_, id)) {
      RoundOtherwise(node.layout, data_[Index(id)]);
    }
    const TensorPlace& place = places_[Index(id)];
    return place.buffer->Set(place.offset, data_[Index(id)], Bytes(id));
  }

 private:
  int64_t Bytes(NodeId id) const { return ByteExtent(graph_.layout(id)).value_or(0); }

  absl::Status Load(NodeId id) {
    const TensorPlace& place = places_[Index(id)];
    uint8_t* weights = nullptr;
    if (auto* fake = dynamic_cast<FakeBuffer*>(place.buffer); fake != nullptr) {
      weights = fake->PlainWeights();
    } else if (place.buffer->usage() == BufferUsage::kWeights) {
      weights = static_cast<uint8_t*>(place.buffer->host_data());
    }
    if (weights != nullptr) {
      data_[Index(id)] = weights + place.offset;
      return absl::OkStatus();
    }
    copies_.emplace_back(static_cast<size_t>(Bytes(id)));
    data_[Index(id)] = copies_.back().data();
    return place.buffer->Get(place.offset, data_[Index(id)], Bytes(id));
  }

  const FakeDevice& device_;
  const Graph& graph_;
  const absl::Span<const TensorPlace> places_;
  std::vector<uint8_t*> data_;
  std::deque<std::vector<uint8_t>> copies_;
};

absl::Status RunNodes(const FakeDevice& device, const FakeExecutable& executable) {
  for (const NodeId id : executable.nodes) {
    if (!executable.graph.Executes(id)) continue;
    if (device.options().before_node) {
      RETURN_IF_ERROR(device.options().before_node(executable.graph, id));
    }
    RETURN_IF_ERROR(Operands(device, executable.graph, executable.places).Evaluate(id));
    if (device.options().after_node) {
      device.options().after_node(executable.graph, id, executable.places[Index(id)]);
    }
  }
  return absl::OkStatus();
}

}  // namespace

FakeBackend::FakeBackend(FakeDevice& device, uint64_t seed)
    : device_(device), random_(seed), thread_([this] { Run(); }) {}

FakeBackend::~FakeBackend() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

void FakeBackend::Enqueue(Work work) {
  MutexLock lock(mutex_);
  queue_.push_back(std::move(work));
  changed_.NotifyAll();
}

void FakeBackend::Run() {
  while (true) {
    Work work;
    {
      MutexLock lock(mutex_);
      busy_ = false;
      if (queue_.empty()) changed_.NotifyAll();
      while (queue_.empty() && !stopping_) changed_.Wait(mutex_);
      if (queue_.empty()) return;
      work = std::move(queue_.front());
      queue_.pop_front();
      busy_ = true;
    }
    Delay();
    const absl::Status status = work();
    MutexLock lock(mutex_);
    if (status_.ok()) status_ = status;
  }
}

void FakeBackend::Delay() {
  if (!device_.options().delays) return;
  const int64_t choice = random_.Between(0, 15);
  // More of these would cost a loaded machine a time slice each, and find no more.
  if (choice == 14) std::this_thread::yield();
  if (choice == 15) std::this_thread::sleep_for(std::chrono::microseconds(random_.Between(1, 200)));
}

absl::StatusOr<std::unique_ptr<Executable>> FakeBackend::Prepare(const GraphSlice& slice) {
  RETURN_IF_ERROR(CheckSlice(device_, slice));
  for (const NodeId id : slice.nodes) {
    if (!slice.graph->Executes(id)) continue;
    auto operands = slice.graph->node(id).sources;
    operands.push_back(id);
    for (const NodeId operand : operands) {
      Buffer* buffer = slice.places[Index(operand)].buffer;
      if (dynamic_cast<FakeBuffer*>(buffer) == nullptr && buffer->host_data() == nullptr) {
        return absl::InvalidArgumentError(absl::StrCat(
            device_.name(), ": ", NodeText(*slice.graph, id), ": tensor ", Index(operand), " in ",
            buffer->type().name(), " is neither in fake nor in host memory"));
      }
    }
  }
  MutexLock lock(device_.mutex_);
  ++device_.traffic_.prepared;
  return std::make_unique<FakeExecutable>(slice);
}

absl::Status FakeBackend::Launch(Executable& executable) {
  auto* fake = dynamic_cast<FakeExecutable*>(&executable);
  WEFT_CHECK(fake != nullptr);
  Enqueue([this, fake]() -> absl::Status {
    {
      MutexLock lock(mutex_);
      if (!status_.ok()) return status_;  // sticky: nothing runs after an error
    }
    absl::Status status = RunNodes(device_, *fake);
    if (status.ok()) return status;
    return absl::Status(status.code(), absl::StrCat(device_.name(), ": ", status.message()));
  });
  return absl::OkStatus();
}

absl::Status FakeBackend::Upload(const void* data, Buffer& destination, int64_t offset,
                                 int64_t bytes) {
  RETURN_IF_ERROR(CheckRange(destination, offset, bytes));
  Enqueue([data, &destination, offset, bytes] { return destination.Set(offset, data, bytes); });
  return absl::OkStatus();
}

absl::Status FakeBackend::Download(Buffer& source, int64_t offset, void* data, int64_t bytes) {
  RETURN_IF_ERROR(CheckRange(source, offset, bytes));
  Enqueue([&source, offset, data, bytes] { return source.Get(offset, data, bytes); });
  return absl::OkStatus();
}

absl::Status FakeBackend::Copy(Buffer& source, int64_t source_offset, Buffer& destination,
                               int64_t destination_offset, int64_t bytes) {
  RETURN_IF_ERROR(CheckRange(source, source_offset, bytes));
  RETURN_IF_ERROR(CheckRange(destination, destination_offset, bytes));
  {
    MutexLock lock(device_.mutex_);
    ++device_.traffic_.copies;
    device_.traffic_.copied_bytes += bytes;
  }
  Enqueue([&source, source_offset, &destination, destination_offset, bytes] {
    return CopyBuffer(source, source_offset, destination, destination_offset, bytes);
  });
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Event>> FakeBackend::NewEvent() {
  return std::make_unique<FakeEvent>();
}

absl::Status FakeBackend::Record(Event& event) {
  auto* fake = dynamic_cast<FakeEvent*>(&event);
  if (fake == nullptr) return absl::InvalidArgumentError("event of another device");
  const std::shared_ptr<EventState> state = fake->state;
  uint64_t point = 0;
  {
    MutexLock lock(state->mutex);
    point = ++state->recorded;
  }
  Enqueue([this, state, point] {
    absl::Status before;
    {
      MutexLock lock(mutex_);
      before = status_;
    }
    MutexLock lock(state->mutex);
    state->completed = point;
    state->status = std::move(before);
    state->changed.NotifyAll();
    return absl::OkStatus();
  });
  return absl::OkStatus();
}

absl::Status FakeBackend::Wait(Event& event) {
  if (auto* fake = dynamic_cast<FakeEvent*>(&event); fake != nullptr) {
    // The point is the one recorded now; a later Record is none of this wait's business.
    // An error of the other stream stays that stream's.
    Enqueue([state = fake->state, point = fake->state->Last()] {
      state->Await(point).IgnoreError();
      return absl::OkStatus();
    });
  } else {
    Enqueue([&event] { return event.Synchronize(); });
  }
  return absl::OkStatus();
}

absl::Status FakeBackend::Synchronize() {
  {
    MutexLock lock(device_.mutex_);
    ++device_.traffic_.synchronizations;
  }
  MutexLock lock(mutex_);
  while (busy_ || !queue_.empty()) changed_.Wait(mutex_);
  return std::exchange(status_, absl::OkStatus());
}

}  // namespace weft
