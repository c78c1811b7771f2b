// Device lists and models for tests of placement.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/device/null_device.h"
#include "common/gguf/gguf_file.h"
#include "coordinator/models/model.h"
#include "coordinator/placement/placement_remark.h"
#include "tests/support/editable_gguf.h"
#include "tests/support/temporary_folder.h"

namespace weft {

// Null devices from "HOST.KINDn:MEMORY", in GiB or with a k in KiB: "w0.gpu0:24", "w0.gpu1:20k",
// "local.cpu0" (unknown memory). Kinds are gpu, blas, cpu and meta.
class NullDevices {
 public:
  explicit NullDevices(const std::vector<std::string>& specs);

  absl::Span<Device* const> list() const { return list_; }
  // Position of a device; aborts if there is none of that name.
  int32_t Find(const std::string& name) const;
  // The device of that name is another from now on.
  void Change(const std::string& name, const std::function<void(NullDeviceOptions&)>& change);
  // The device of that name refuses what `supports` refuses, from now on.
  void Refuse(const std::string& name, std::function<Support(const Graph&, NodeId)> supports);

 private:
  std::vector<std::unique_ptr<NullDevice>> owned_;
  std::vector<NullDeviceOptions> options_;
  std::vector<Device*> list_;
};

// "w0.gpu0:8", "w1.gpu0:8", ... of that many workers, then "local.cpu0:8".
std::vector<std::string> WorkerGpus(int count);

std::vector<std::string> Texts(const std::vector<PlacementRemark>& remarks);

// A model of that golden folder, its second layer repeated to `layers` of them, after an edit.
struct TestModel {
  TemporaryFolder folder;
  std::unique_ptr<GgufFile> file;
  std::unique_ptr<Model> model;

  TestModel(const std::string& name, uint32_t layers,
            const std::function<void(EditableGguf&)>& edit = nullptr);
};

}  // namespace weft
