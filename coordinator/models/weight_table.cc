#include "coordinator/models/weight_table.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"

namespace weft {

absl::Status WeightTable::Require(std::string_view name, WeightRole role, int32_t layer,
                                  const Extents& ne, bool f32) {
  const GgufTensor* tensor = file_->FindTensor(name);
  if (tensor == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("missing tensor '", AbslView(name),
                     "': the file is incomplete or of another architecture"));
  }
  if (tensor->layout.ne != ne) {
    return absl::InvalidArgumentError(absl::StrCat("tensor '", AbslView(name), "' has extents ",
                                                   ExtentsText(tensor->layout.ne),
                                                   ", the metadata asks for ", ExtentsText(ne)));
  }
  const DTypeInfo& type = GetDTypeInfo(tensor->layout.dtype);
  if (f32 && type.dtype != DType::kF32) {
    return absl::InvalidArgumentError(
        absl::StrCat("tensor '", AbslView(name), "' is ", AbslView(type.name), ", want F32"));
  }
  if (!type.codec) {
    return absl::UnimplementedError(absl::StrCat("tensor '", AbslView(name), "' has type ",
                                                 AbslView(type.name),
                                                 ", which weft cannot compute with"));
  }
  index_.emplace(std::string(name), static_cast<int32_t>(weights_.size()));
  weights_.push_back(
      {std::string(name), tensor->layout, role, absl::EndsWith(AbslView(name), ".bias"), layer});
  return absl::OkStatus();
}

absl::Status WeightTable::Allow(std::string_view name, WeightRole role, int32_t layer,
                                const Extents& ne, bool f32) {
  if (file_->FindTensor(name) == nullptr) return absl::OkStatus();
  return Require(name, role, layer, ne, f32);
}

int32_t WeightTable::Find(std::string_view name) const {
  const auto found = index_.find(AbslView(name));
  return found == index_.end() ? -1 : found->second;
}

std::vector<std::string> WeightTable::Unused() const {
  std::vector<std::string> names;
  for (const GgufTensor& tensor : file_->tensors()) {
    if (!index_.contains(tensor.name)) names.push_back(tensor.name);
  }
  return names;
}

}  // namespace weft
