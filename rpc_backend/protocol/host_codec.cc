#include "rpc_backend/protocol/host_codec.h"

#include "rpc_backend/protocol/clean_text.h"

namespace weft {
namespace {

constexpr size_t kTextBytes = 64;

}  // namespace

void EncodeHost(const HostFacts& facts, proto::HostFacts& message) {
  message.set_unix_microseconds(facts.unix_microseconds);
  message.set_clock_held(facts.clock_held);
  message.set_kernel(CleanText(facts.kernel, kTextBytes));
  message.set_processors(facts.processors);
  message.set_processor_limit(facts.processor_limit);
  message.set_memory_bytes(facts.memory_bytes);
  message.set_memory_available(facts.memory_available);
  message.set_memory_limit(facts.memory_limit);
  message.set_shared_bytes(facts.shared_bytes);
  message.set_shared_free(facts.shared_free);
  message.set_huge_pages(CleanText(facts.huge_pages, kTextBytes));
  message.set_locked_limit(facts.locked_limit);
  message.set_open_files_limit(facts.open_files_limit);
  message.set_has_rdma(facts.has_rdma);
}

HostFacts DecodeHost(const proto::HostFacts& message) {
  HostFacts facts;
  facts.unix_microseconds = message.unix_microseconds();
  facts.clock_held = message.clock_held();
  facts.kernel = message.kernel();
  facts.processors = message.processors();
  facts.processor_limit = message.processor_limit();
  facts.memory_bytes = message.memory_bytes();
  facts.memory_available = message.memory_available();
  facts.memory_limit = message.memory_limit();
  facts.shared_bytes = message.shared_bytes();
  facts.shared_free = message.shared_free();
  facts.huge_pages = message.huge_pages();
  facts.locked_limit = message.locked_limit();
  facts.open_files_limit = message.open_files_limit();
  facts.has_rdma = message.has_rdma();
  return facts;
}

}  // namespace weft
