#include "worker/session/worker_meter.h"

#include <memory>

#include "common/transport/loopback/loopback_network.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace weft {
namespace {

TEST(WorkerMeterTest, StepsThatFailHaveNoTime) {
  WorkerMeter meter;
  StepOutput output;
  output.compute_seconds = 0.5;
  output.wait_seconds = 0.25;
  meter.CountStep(true, 1.0, output);
  meter.CountStep(false, 1.0, output);
  const WorkerCounts counts = meter.counts();
  EXPECT_EQ(counts.steps, 1);
  EXPECT_EQ(counts.steps_failed, 1);
  EXPECT_DOUBLE_EQ(counts.compute_seconds, 0.5);
  EXPECT_DOUBLE_EQ(counts.wait_seconds, 0.25);
  EXPECT_EQ(counts.step_seconds.count, 1);
}

TEST(WorkerMeterTest, WeightsBySource) {
  WorkerMeter meter;
  meter.CountWeights(WeightSource::kPeer, 5);
  meter.CountWeights(WeightSource::kPeer, 6);
  meter.CountWeights(WeightSource::kFile, 7);
  const WorkerCounts counts = meter.counts();
  EXPECT_EQ(counts.weight_bytes[static_cast<size_t>(WeightSource::kPeer)], 11);
  EXPECT_EQ(counts.weight_bytes[static_cast<size_t>(WeightSource::kFile)], 7);
  EXPECT_EQ(counts.weight_bytes[static_cast<size_t>(WeightSource::kCache)], 0);
}

// A counter must not shrink when a session ends.
TEST(WorkerMeterTest, TrafficOfAPortStaysWhenItGoes) {
  const SystemClock clock;
  LoopbackNetwork network;
  WorkerMeter meter;
  std::unique_ptr<MessagePort> one;
  std::unique_ptr<MessagePort> two;
  PortOptions options;
  options.epoch = 1;
  options.own_number = 0;
  const std::unique_ptr<Transport> here = network.NewTransport();
  const std::unique_ptr<Transport> there = network.NewTransport();
  ASSERT_OK_AND_ASSIGN(one, here->NewPort(options));
  options.own_number = 1;
  ASSERT_OK_AND_ASSIGN(two, there->NewPort(options));
  ASSERT_OK(two->Expect({0, "one", {}}));
  ASSERT_OK(one->Connect({1, "two", {}}, two->address(), clock.Now() + std::chrono::seconds(10)));
  meter.AddPort(*one);
  const std::vector<uint8_t> bytes(100, 1);
  ASSERT_OK(SendBytes(*one, 1, {1, 1, 1, 0}, bytes));
  ASSERT_EQ(meter.counts().traffic.size(), 1u);
  EXPECT_EQ(meter.counts().traffic.begin()->second.bytes_sent, 100);
  meter.RemovePort(*one);
  meter.RemovePort(*one);
  one.reset();
  ASSERT_EQ(meter.counts().traffic.size(), 1u);
  EXPECT_EQ(meter.counts().traffic.begin()->second.bytes_sent, 100);
}

}  // namespace
}  // namespace weft
