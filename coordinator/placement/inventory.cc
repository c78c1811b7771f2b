#include "coordinator/placement/inventory.h"

#include <algorithm>
#include <bitset>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/mapped_file.h"
#include "common/base/status_macros.h"
#include "common/graph/op.h"
#include "common/tensor/dtype.h"
#include "coordinator/json/checked_json.h"

namespace weft {
namespace {

constexpr int kMaxDepth = 8;
constexpr size_t kMaxNameBytes = 64;
constexpr int64_t kMaxMemory = int64_t{1} << 60;
constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();
constexpr const char* kLocal = "local";

// A device as the file has it.
struct Entry {
  NullDeviceOptions options;
  DeviceSpeed speed;
  std::string shares;  // name of a device, or empty
  std::string path;
};

absl::StatusOr<DeviceKind> ReadKind(const JsonValue& value) {
  ASSIGN_OR_RETURN(const std::string text, value.Text(kMaxNameBytes));
  for (const DeviceKind kind : {DeviceKind::kGpu, DeviceKind::kAccelerator, DeviceKind::kCpu}) {
    if (text == DeviceKindName(kind)) return kind;
  }
  return value.Error(absl::StrCat("'", text, "', want gpu, accel or cpu"));
}

// What a device refuses.
struct Refusals {
  std::bitset<kOpCount> ops;
  std::bitset<kDTypeCount> types;

  Support operator()(const Graph& graph, NodeId id) const {
    const Node& node = graph.node(id);
    if (ops[static_cast<size_t>(node.op)]) {
      return absl::UnimplementedError(absl::StrCat("it does not run ", AbslView(OpName(node.op))));
    }
    const auto check = [&](DType dtype) -> Support {
      if (!types[static_cast<size_t>(dtype)]) return absl::OkStatus();
      return absl::UnimplementedError(absl::StrCat("it has no ", AbslView(DTypeName(dtype))));
    };
    for (const NodeId source : node.sources) RETURN_IF_ERROR(check(graph.layout(source).dtype));
    return check(node.layout.dtype);
  }
};

absl::StatusOr<std::bitset<kOpCount>> ReadOps(const JsonValue& value) {
  std::bitset<kOpCount> ops;
  ASSIGN_OR_RETURN(const std::vector<JsonValue> elements, value.Elements(4 * kOpCount));
  for (const JsonValue& element : elements) {
    ASSIGN_OR_RETURN(const std::string name, element.Text(kMaxNameBytes));
    const absl::Span<const OpInfo> all = AllOps();
    const auto* found =
        std::find_if(all.begin(), all.end(), [&](const OpInfo& info) { return info.name == name; });
    if (found == all.end() || !RunsOnDevice(found->op)) {
      return element.Error(absl::StrCat("'", name, "' is not an op that a device runs"));
    }
    ops.set(static_cast<size_t>(found->op));
  }
  return ops;
}

absl::StatusOr<Refusals> ReadRefusals(const JsonValue& value) {
  Refusals refusals;
  if (value.is_array()) {
    ASSIGN_OR_RETURN(const std::bitset<kOpCount> runs, ReadOps(value));
    refusals.ops = ~runs;
    return refusals;
  }
  RETURN_IF_ERROR(value.CheckKeys({"refuse", "refuse_types"}));
  if (value.Has("refuse")) {
    ASSIGN_OR_RETURN(const JsonValue list, value.At("refuse"));
    ASSIGN_OR_RETURN(refusals.ops, ReadOps(list));
  }
  if (value.Has("refuse_types")) {
    ASSIGN_OR_RETURN(const JsonValue list, value.At("refuse_types"));
    ASSIGN_OR_RETURN(const std::vector<JsonValue> elements, list.Elements(4 * kDTypeCount));
    for (const JsonValue& element : elements) {
      ASSIGN_OR_RETURN(const std::string name, element.Text(kMaxNameBytes));
      const std::optional<DType> dtype = DTypeFromName(name);
      if (!dtype.has_value()) {
        return element.Error(absl::StrCat("'", name, "' is not a tensor type"));
      }
      refusals.types.set(static_cast<size_t>(*dtype));
    }
  }
  return refusals;
}

absl::Status ReadBatch(const JsonValue& value, NullDeviceOptions& options) {
  RETURN_IF_ERROR(value.CheckKeys({"min", "max", "offload"}));
  const auto read = [&](const char* key, int64_t least, int64_t& target) -> absl::Status {
    if (!value.Has(key)) return absl::OkStatus();
    ASSIGN_OR_RETURN(const JsonValue number, value.At(key));
    ASSIGN_OR_RETURN(target, number.Integer(least, kUnlimited));
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(read("min", 1, options.preferred_batch.min));
  RETURN_IF_ERROR(read("max", 1, options.preferred_batch.max));
  RETURN_IF_ERROR(read("offload", 0, options.offload_batch));
  if (options.preferred_batch.min <= options.preferred_batch.max) return absl::OkStatus();
  return value.Error(absl::StrCat("min ", options.preferred_batch.min, " is above max ",
                                  options.preferred_batch.max));
}

absl::Status ReadSpeed(const JsonValue& value, const char* key, double& target) {
  if (!value.Has(key)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const JsonValue number, value.At(key));
  ASSIGN_OR_RETURN(target, number.Amount());
  return absl::OkStatus();
}

absl::Status ReadMemory(const JsonValue& value, Entry& entry) {
  NullDeviceOptions& options = entry.options;
  options.memory_bytes = 0;
  if (value.Has("memory_bytes")) {
    ASSIGN_OR_RETURN(const JsonValue bytes, value.At("memory_bytes"));
    ASSIGN_OR_RETURN(options.memory_bytes, bytes.Integer(0, kMaxMemory));
  }
  options.max_buffer_bytes = std::max(options.max_buffer_bytes, options.memory_bytes);
  if (value.Has("reads_host_memory")) {
    ASSIGN_OR_RETURN(const JsonValue reads, value.At("reads_host_memory"));
    ASSIGN_OR_RETURN(options.reads_host_memory, reads.Bool());
  }
  if (value.Has("shares_memory_of")) {
    ASSIGN_OR_RETURN(const JsonValue shares, value.At("shares_memory_of"));
    ASSIGN_OR_RETURN(entry.shares, shares.Text(kMaxNameBytes));
  } else if (options.kind == DeviceKind::kAccelerator) {
    entry.shares = options.name.substr(0, options.name.find('.')) + ".cpu0";
  }
  if (!value.Has("layout")) return absl::OkStatus();
  ASSIGN_OR_RETURN(const JsonValue layout, value.At("layout"));
  if (!entry.shares.empty()) {
    return layout.Error(absl::StrCat("its memory is that of ", entry.shares));
  }
  ASSIGN_OR_RETURN(options.layout, layout.Text(kMaxNameBytes));
  return absl::OkStatus();
}

struct HostEntry {
  std::string name;
  std::string machine;
  std::string prefix;  // of its devices' names: "w3" or "local"
};

// `counts` numbers the devices of each kind of the host.
absl::StatusOr<Entry> ReadDevice(const JsonValue& value, const HostEntry& host,
                                 absl::flat_hash_map<DeviceKind, int64_t>& counts) {
  RETURN_IF_ERROR(
      value.CheckKeys({"kind", "memory_bytes", "flops", "bandwidth", "ops", "batch", "layout",
                       "shares_memory_of", "reads_host_memory", "arithmetic"}));
  Entry entry;
  entry.path = value.path();
  NullDeviceOptions& options = entry.options;
  ASSIGN_OR_RETURN(const JsonValue kind, value.At("kind"));
  ASSIGN_OR_RETURN(options.kind, ReadKind(kind));
  options.host = host.name;
  options.machine = host.machine;
  options.name = absl::StrCat(host.prefix, ".", AbslView(DeviceKindName(options.kind)),
                              counts[options.kind]++);
  options.capabilities.host_memory = options.kind != DeviceKind::kGpu;
  if (options.kind == DeviceKind::kGpu) {
    options.capabilities.async = options.capabilities.events = true;
    options.offload_batch = kDefaultOffloadBatch;
  }
  RETURN_IF_ERROR(ReadMemory(value, entry));
  if (value.Has("arithmetic")) {
    ASSIGN_OR_RETURN(const JsonValue arithmetic, value.At("arithmetic"));
    ASSIGN_OR_RETURN(options.arithmetic, arithmetic.Text(kMaxNameBytes));
  }
  RETURN_IF_ERROR(ReadSpeed(value, "flops", entry.speed.flops));
  RETURN_IF_ERROR(ReadSpeed(value, "bandwidth", entry.speed.bytes_per_s));
  if (value.Has("ops")) {
    ASSIGN_OR_RETURN(const JsonValue ops, value.At("ops"));
    ASSIGN_OR_RETURN(options.supports, ReadRefusals(ops));
  }
  if (value.Has("batch")) {
    ASSIGN_OR_RETURN(const JsonValue batch, value.At("batch"));
    RETURN_IF_ERROR(ReadBatch(batch, options));
  }
  return entry;
}

absl::StatusOr<std::vector<Entry>> ReadHosts(const JsonValue& value,
                                             absl::flat_hash_set<std::string>& names) {
  std::vector<Entry> entries;
  ASSIGN_OR_RETURN(const std::vector<JsonValue> hosts, value.Elements(kMaxInventoryDevices));
  int64_t workers = 0;
  for (const JsonValue& host : hosts) {
    RETURN_IF_ERROR(host.CheckKeys({"name", "machine", "devices"}));
    HostEntry read;
    ASSIGN_OR_RETURN(const JsonValue name, host.At("name"));
    ASSIGN_OR_RETURN(read.name, name.Text(kMaxHostNameBytes));
    if (!names.insert(read.name).second) {
      return name.Error(absl::StrCat("there are two hosts '", read.name, "'"));
    }
    if (host.Has("machine")) {
      ASSIGN_OR_RETURN(const JsonValue machine, host.At("machine"));
      ASSIGN_OR_RETURN(read.machine, machine.Text(kMaxHostNameBytes));
    }
    ASSIGN_OR_RETURN(const JsonValue list, host.At("devices"));
    const auto room = kMaxInventoryDevices - static_cast<int64_t>(entries.size());
    ASSIGN_OR_RETURN(const std::vector<JsonValue> devices, list.Elements(room));
    read.prefix = read.name == kLocal ? kLocal : absl::StrCat("w", workers++);
    absl::flat_hash_map<DeviceKind, int64_t> counts;
    for (const JsonValue& device : devices) {
      ASSIGN_OR_RETURN(Entry entry, ReadDevice(device, read, counts));
      entries.push_back(std::move(entry));
    }
  }
  return entries;
}

absl::StatusOr<std::vector<InventoryLink>> ReadLinks(
    const JsonValue& value, const absl::flat_hash_set<std::string>& hosts) {
  std::vector<InventoryLink> links;
  ASSIGN_OR_RETURN(const std::vector<JsonValue> elements, value.Elements(kMaxInventoryLinks));
  for (const JsonValue& element : elements) {
    RETURN_IF_ERROR(element.CheckKeys({"a", "b", "latency_us", "bytes_per_s"}));
    InventoryLink link;
    for (const auto& [key, target] : {std::pair("a", &link.a), std::pair("b", &link.b)}) {
      ASSIGN_OR_RETURN(const JsonValue end, element.At(key));
      ASSIGN_OR_RETURN(*target, end.Text(kMaxHostNameBytes));
      if (*target != kLocal && !hosts.contains(*target)) {
        return end.Error(absl::StrCat("no host '", *target, "'"));
      }
    }
    for (const auto& [key, target] :
         {std::pair("latency_us", &link.latency_us), std::pair("bytes_per_s", &link.bytes_per_s)}) {
      ASSIGN_OR_RETURN(const JsonValue number, element.At(key));
      ASSIGN_OR_RETURN(*target, number.Amount());
    }
    links.push_back(std::move(link));
  }
  return links;
}

// Sort key of the scheduler's order; local.cpu0 is the last.
int Rank(const NullDeviceOptions& options) {
  switch (options.kind) {
    case DeviceKind::kGpu:
    case DeviceKind::kMeta:
      return 0;
    case DeviceKind::kAccelerator:
      return 1;
    case DeviceKind::kCpu:
      break;
  }
  return options.name == "local.cpu0" ? 3 : 2;
}

void AddCoordinator(std::vector<Entry>& entries) {
  for (const Entry& entry : entries) {
    if (entry.options.name == "local.cpu0") return;
  }
  Entry entry;
  entry.options.name = "local.cpu0";
  entry.options.host = kLocal;
  entry.options.kind = DeviceKind::kCpu;
  entry.options.capabilities.host_memory = true;
  entry.options.memory_bytes = 0;
  entries.push_back(std::move(entry));
}

// Whoever shares memory shares that of a device of its host that has its own.
absl::Status CheckSharing(const std::vector<Entry>& entries) {
  absl::flat_hash_map<std::string, const Entry*> by_name;
  for (const Entry& entry : entries) by_name.emplace(entry.options.name, &entry);
  for (const Entry& entry : entries) {
    if (entry.shares.empty()) continue;
    const auto owner = by_name.find(entry.shares);
    const bool found = owner != by_name.end() && owner->second->options.host == entry.options.host;
    if (found && owner->second->shares.empty()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(entry.path, ".shares_memory_of: ",
                     found ? absl::StrCat(entry.shares, " has no memory of its own")
                           : absl::StrCat("no device '", entry.shares, "' on its host")));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Inventory> Inventory::Parse(std::string_view json) {
  if (static_cast<int64_t>(json.size()) > kMaxInventoryBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("inventory of ", json.size(), " bytes, the limit is ", kMaxInventoryBytes));
  }
  ASSIGN_OR_RETURN(const Json parsed, ParseJson(json, {.depth = kMaxDepth}));
  const JsonValue root(parsed);
  RETURN_IF_ERROR(root.CheckKeys({"hosts", "links"}));
  ASSIGN_OR_RETURN(const JsonValue hosts, root.At("hosts"));
  absl::flat_hash_set<std::string> names;
  ASSIGN_OR_RETURN(std::vector<Entry> entries, ReadHosts(hosts, names));
  Inventory inventory;
  if (root.Has("links")) {
    ASSIGN_OR_RETURN(const JsonValue links, root.At("links"));
    ASSIGN_OR_RETURN(inventory.links_, ReadLinks(links, names));
  }
  AddCoordinator(entries);
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return Rank(a.options) < Rank(b.options);
  });
  RETURN_IF_ERROR(CheckSharing(entries));
  inventory.devices_.resize(entries.size());
  absl::flat_hash_map<std::string, Device*> owners;
  // Owners of memory first: others point to them.
  for (const bool sharing : {false, true}) {
    for (size_t i = 0; i < entries.size(); ++i) {
      Entry& entry = entries[i];
      if (entry.shares.empty() == sharing) continue;
      if (sharing) entry.options.shares_memory_of = owners.at(entry.shares);
      inventory.owned_.push_back(std::make_unique<NullDevice>(entry.options));
      inventory.devices_[i] = inventory.owned_.back().get();
      if (!sharing) owners.emplace(entry.options.name, inventory.devices_[i]);
    }
  }
  for (const Entry& entry : entries) inventory.speeds_.push_back(entry.speed);
  return inventory;
}

absl::StatusOr<Inventory> Inventory::Read(const std::string& path) {
  ASSIGN_OR_RETURN(const std::unique_ptr<MappedFile> file, MappedFile::Open(path));
  const absl::Span<const uint8_t> bytes = file->bytes();
  absl::StatusOr<Inventory> inventory =
      Parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (!inventory.ok()) {
    return absl::Status(inventory.status().code(),
                        absl::StrCat(path, ": ", inventory.status().message()));
  }
  return inventory;
}

}  // namespace weft
