// A graph on fake devices, and the same graph on the oracle.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "common/program/local_program_host.h"
#include "tests/support/fake_device.h"
#include "tests/support/host_graph.h"
#include "tests/support/program_for_test.h"

namespace weft {

// Devices "fake0", "fake1", ... with seeded delays.
std::vector<std::unique_ptr<FakeDevice>> MakeFakeDevices(int count, uint64_t seed);
// The devices of SharingMachine: "host", "accel" in the same memory, and "gpu", which reaches it.
std::vector<std::unique_ptr<FakeDevice>> MakeSharingDevices(uint64_t seed);
std::vector<Device*> Borrow(const std::vector<std::unique_ptr<FakeDevice>>& devices);

// The time by which a step of a test is done for certain.
Clock::TimePoint Soon();

// Copies the weights and caches of `host` (the memory of `graph`) into the bound slots.
void UploadBound(const Graph& graph, HostGraph& host, const BoundSlots& bound);

// The inputs of `graph` as they lie in `host`, in id order.
std::vector<std::vector<uint8_t>> InputBytes(const Graph& graph, HostGraph& host);
// The page tables of `graph` as they lie in `host`, as updates of every entry.
std::vector<TableUpdate> TableContent(const Graph& graph, HostGraph& host);

std::vector<absl::Span<const uint8_t>> Spans(const std::vector<std::vector<uint8_t>>& inputs);

// The bytes of the outputs of `graph` in `host`, as a step hands them back.
std::vector<std::vector<uint8_t>> OutputBytes(const Graph& graph, HostGraph& host);

}  // namespace weft
