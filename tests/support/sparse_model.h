// Models of real sizes without their weights: a file that is all hole behind its header, so that
// graphs can be built and planned, but nothing computed.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "common/gguf/gguf_file.h"
#include "coordinator/models/model.h"
#include "tests/support/temporary_folder.h"

namespace weft {

class SparseModel {
 public:
  // A shape of `weft synth` ("1b", "8b"; decision 30) in Q4_0, with so many layers if `layers` > 0.
  // Aborts if the file cannot be made.
  explicit SparseModel(std::string_view shape, int64_t layers = 0);

  const Model& model() const { return *model_; }

 private:
  TemporaryFolder folder_;
  std::unique_ptr<GgufFile> file_;
  std::unique_ptr<Model> model_;
};

}  // namespace weft
