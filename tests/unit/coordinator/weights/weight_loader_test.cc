#include "coordinator/weights/weight_loader.h"

#include <memory>
#include <string>
#include <vector>

#include "common/cpu/cpu_device.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/fake_device.h"
#include "tests/support/golden_model.h"
#include "tests/support/status_matchers.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct OpenModel {
  std::unique_ptr<GgufFile> file;
  std::unique_ptr<Model> model;

  explicit OpenModel(const std::string& name) {
    auto opened = GgufFile::Open(TestDataFolder() + "/models/" + name + "/model.gguf");
    EXPECT_OK(opened);
    file = *std::move(opened);
    auto made = Model::Create(*file);
    EXPECT_OK(made);
    model = *std::move(made);
  }

  int32_t Id(const std::string& name) const {
    const int32_t id = model->weight_table().Find(name);
    EXPECT_GE(id, 0) << name;
    return id;
  }
  int64_t FileBytes() const {
    int64_t bytes = 0;
    for (const GgufTensor& tensor : file->tensors()) bytes += tensor.bytes;
    return bytes;
  }
  // What the file says weight `id` is.
  std::vector<uint8_t> Wanted(int32_t id) const {
    std::vector<uint8_t> all;
    for (const GgufTensor* tensor : model->weight_table().TensorsOf(model->weights()[id])) {
      const absl::Span<const uint8_t> bytes = file->TensorBytes(*tensor);
      all.insert(all.end(), bytes.begin(), bytes.end());
    }
    return all;
  }
};

// A CPU and two devices with masked memory of their own.
struct Machine {
  std::unique_ptr<CpuDevice> cpu;
  FakeDevice first{Options("fake0")};
  FakeDevice second{Options("fake1")};
  std::vector<Device*> list;

  Machine() {
    CpuDeviceOptions options;
    auto made = CpuDevice::Create(options);
    EXPECT_OK(made);
    cpu = *std::move(made);
    list = {&first, &second, cpu.get()};
  }
  static FakeDeviceOptions Options(const std::string& name) {
    FakeDeviceOptions options;
    options.name = name;
    options.delays = false;
    return options;
  }
};

void ExpectAllThere(const OpenModel& open, const Machine& machine, const LoadedWeights& loaded,
                    const std::vector<int32_t>& where) {
  ASSERT_EQ(loaded.bindings().size(), open.model->weights().size());
  for (size_t i = 0; i < loaded.bindings().size(); ++i) {
    SCOPED_TRACE(open.model->weights()[i].name);
    const SlotBinding& binding = loaded.bindings()[i];
    EXPECT_EQ(binding.kind, SlotKind::kWeight);
    EXPECT_EQ(binding.id, static_cast<int32_t>(i));
    EXPECT_EQ(&binding.buffer->type().device(), machine.list[where[i]]);
    EXPECT_EQ(binding.buffer->usage(), BufferUsage::kWeights);
    const std::vector<uint8_t> want = open.Wanted(binding.id);
    std::vector<uint8_t> got(want.size());
    ASSERT_OK(binding.buffer->Get(binding.offset, got.data(), static_cast<int64_t>(got.size())));
    EXPECT_EQ(got, want);
  }
}

TEST(LoadedWeights, WhateverTheDevices_EveryWeightIsThere) {
  for (const char* name : {"llama-moe", "llama3-rope", "variants/mixtral-split-experts"}) {
    const OpenModel open(name);
    for (int pattern = 0; pattern < 5; ++pattern) {
      SCOPED_TRACE(testing::Message() << name << ", pattern " << pattern);
      Machine machine;
      std::vector<int32_t> where;
      for (size_t i = 0; i < open.model->weights().size(); ++i) {
        where.push_back(pattern < 3 ? pattern : static_cast<int32_t>((i * pattern) % 3));
      }
      ASSERT_OK_AND_ASSIGN(const auto loaded,
                           LoadedWeights::Load(*open.model, machine.list, where, nullptr));
      ExpectAllThere(open, machine, *loaded, where);
    }
  }
}

TEST(LoadedWeights, OneCpu_IsInPlaceAndCopiesNothing) {
  const OpenModel open("llama3-rope");
  Machine machine;
  ASSERT_OK_AND_ASSIGN(const auto loaded, LoadedWeights::Load(*open.model, *machine.cpu, nullptr));
  EXPECT_TRUE(loaded->in_place());
  // Tied output and shared rope factors count once.
  EXPECT_EQ(loaded->bytes(), open.FileBytes());
  const absl::Span<const uint8_t> mapped = open.file->file(0).bytes();
  for (const SlotBinding& binding : loaded->bindings()) {
    EXPECT_EQ(binding.buffer->host_data(), mapped.data());
  }
  const OpenModel stacked("variants/mixtral-split-experts");
  ASSERT_OK_AND_ASSIGN(const auto copied,
                       LoadedWeights::Load(*stacked.model, *machine.cpu, nullptr));
  EXPECT_FALSE(copied->in_place());
  EXPECT_EQ(copied->bytes(), stacked.FileBytes());
}

TEST(LoadedWeights, SharedTensor_IsOncePerMemory) {
  const OpenModel open("llama3-rope");
  const int32_t embedding = open.Id("token_embd.weight");
  const int32_t output = open.Id("output.weight");
  const auto matrix = static_cast<int64_t>(open.Wanted(output).size());
  Machine machine;
  std::vector<int32_t> where(open.model->weights().size(), 0);
  {
    ASSERT_OK_AND_ASSIGN(const auto loaded,
                         LoadedWeights::Load(*open.model, machine.list, where, nullptr));
    EXPECT_EQ(loaded->bindings()[embedding].buffer, loaded->bindings()[output].buffer);
    EXPECT_EQ(loaded->bytes(), open.FileBytes());
    EXPECT_EQ(machine.first.used_bytes(), open.FileBytes());
  }
  where[output] = 1;
  {
    ASSERT_OK_AND_ASSIGN(const auto loaded,
                         LoadedWeights::Load(*open.model, machine.list, where, nullptr));
    EXPECT_EQ(loaded->bytes(), open.FileBytes() + matrix);
    EXPECT_EQ(machine.second.used_bytes(), matrix);
    ExpectAllThere(open, machine, *loaded, where);
  }
  // On the CPU the embedding is read where the file is mapped, and the output matrix is a copy.
  where[embedding] = 2;
  ASSERT_OK_AND_ASSIGN(const auto loaded,
                       LoadedWeights::Load(*open.model, machine.list, where, nullptr));
  EXPECT_FALSE(loaded->in_place());
  EXPECT_EQ(loaded->bytes(), open.FileBytes() + matrix);
  EXPECT_EQ(machine.first.used_bytes(), open.FileBytes() - matrix);
}

TEST(LoadedWeights, Progress_EndsAtTheTotalAndCancels) {
  const OpenModel open("llama3-rope");
  Machine machine;
  for (const int32_t device : {0, 2}) {
    const std::vector<int32_t> where(open.model->weights().size(), device);
    int64_t last = 0;
    int64_t of = 0;
    const auto watch = [&](int64_t done, int64_t total) {
      EXPECT_GT(done, last);
      last = done;
      of = total;
      return true;
    };
    ASSERT_OK_AND_ASSIGN(const auto loaded,
                         LoadedWeights::Load(*open.model, machine.list, where, watch));
    EXPECT_EQ(last, open.FileBytes());
    EXPECT_EQ(of, open.FileBytes());
    int calls = 0;
    const auto stop = [&](int64_t, int64_t) { return ++calls < 3; };
    EXPECT_THAT(LoadedWeights::Load(*open.model, machine.list, where, stop),
                StatusIs(absl::StatusCode::kCancelled, HasSubstr("cancelled")));
    EXPECT_EQ(calls, 3);
  }
  EXPECT_EQ(machine.first.used_bytes(), 0);
}

TEST(LoadedWeights, WhatDoesNotFit_IsNamed) {
  const OpenModel open("llama3-rope");
  const int32_t output = open.Id("output.weight");
  FakeDeviceOptions options = Machine::Options("small");
  options.memory_bytes = 100;
  FakeDevice small(options);
  Machine machine;
  machine.list[1] = &small;
  std::vector<int32_t> where(open.model->weights().size(), 0);
  where[output] = 1;
  EXPECT_THAT(LoadedWeights::Load(*open.model, machine.list, where, nullptr),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("weight 'output.weight' (tensor 'token_embd.weight')"),
                             HasSubstr("on small"))));
  EXPECT_EQ(machine.first.used_bytes(), 0);
}

TEST(LoadedWeights, BadDevices_AreRefused) {
  const OpenModel open("llama-gqa");
  Machine machine;
  std::vector<int32_t> where(open.model->weights().size(), 0);
  where.back() = 3;
  EXPECT_THAT(LoadedWeights::Load(*open.model, machine.list, where, nullptr),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("on device 3 of 3")));
  where.back() = -1;
  EXPECT_THAT(LoadedWeights::Load(*open.model, machine.list, where, nullptr),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("on device -1 of 3")));
  where.pop_back();
  EXPECT_THAT(LoadedWeights::Load(*open.model, machine.list, where, nullptr),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("devices for")));
}

}  // namespace
}  // namespace weft
