// A command stream of FakeDevice: a queue and a thread that runs it.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <thread>

#include "common/base/mutex.h"
#include "common/base/random.h"
#include "common/device/device.h"
#include "tests/support/fake_device.h"

namespace weft {

class FakeBackend final : public Backend {
 public:
  FakeBackend(FakeDevice& device, uint64_t seed);
  // Runs what is queued, then ends the thread.
  ~FakeBackend() override;

  Device& device() override { return device_; }
  absl::StatusOr<std::unique_ptr<Executable>> Prepare(const GraphSlice& slice) override;
  absl::Status Launch(Executable& executable) override;
  absl::Status Upload(const void* data, Buffer& destination, int64_t offset,
                      int64_t bytes) override;
  absl::Status Download(Buffer& source, int64_t offset, void* data, int64_t bytes) override;
  absl::Status Copy(Buffer& source, int64_t source_offset, Buffer& destination,
                    int64_t destination_offset, int64_t bytes) override;
  absl::StatusOr<std::unique_ptr<Event>> NewEvent() override;
  absl::Status Record(Event& event) override;
  absl::Status Wait(Event& event) override;
  absl::Status Synchronize() override;

 private:
  using Work = std::function<absl::Status()>;
  void Enqueue(Work work);
  void Run();
  void Delay();  // on the thread

  FakeDevice& device_;
  Random random_;  // of the thread
  Mutex mutex_;
  CondVar changed_;
  std::deque<Work> queue_ ABSL_GUARDED_BY(mutex_);
  bool busy_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);  // the first error since the last Synchronize
  std::thread thread_;
};

}  // namespace weft
