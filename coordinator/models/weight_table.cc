#include "coordinator/models/weight_table.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/status_macros.h"

namespace weft {

namespace {

absl::StatusOr<const GgufTensor*> FindChecked(const GgufFile& file, std::string_view name,
                                              const Extents& ne, bool f32) {
  const GgufTensor* tensor = file.FindTensor(name);
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
  return tensor;
}

}  // namespace

absl::Status WeightTable::Require(std::string_view name, WeightRole role, int32_t layer,
                                  const Extents& ne, bool f32) {
  ASSIGN_OR_RETURN(const GgufTensor* tensor, FindChecked(*file_, name, ne, f32));
  const bool bias = absl::EndsWith(AbslView(name), ".bias");
  Add({std::string(name), tensor->layout, role, bias, layer, {}});
  return absl::OkStatus();
}

void WeightTable::Add(Weight weight) {
  index_.emplace(weight.name, static_cast<int32_t>(weights_.size()));
  weights_.push_back(std::move(weight));
}

absl::Status WeightTable::Share(std::string_view name, std::string_view tensor, WeightRole role,
                                int32_t layer, const Extents& ne, bool f32) {
  ASSIGN_OR_RETURN(const GgufTensor* shared, FindChecked(*file_, tensor, ne, f32));
  parts_.insert(shared->name);
  Add({std::string(name), shared->layout, role, false, layer, {shared->name}});
  return absl::OkStatus();
}

absl::Status WeightTable::RequireStack(std::string_view name,
                                       const std::function<std::string(int64_t)>& part,
                                       WeightRole role, int32_t layer, const Extents& ne) {
  if (file_->FindTensor(name) != nullptr || file_->FindTensor(part(0)) == nullptr) {
    return Require(name, role, layer, ne);
  }
  Weight weight = {std::string(name), {}, role, false, layer, {}};
  for (int64_t i = 0; i < ne[2]; ++i) {
    const std::string own = part(i);
    ASSIGN_OR_RETURN(const GgufTensor* tensor,
                     FindChecked(*file_, own, {ne[0], ne[1], 1, 1}, false));
    const DType dtype = tensor->layout.dtype;
    if (i == 0) {
      ASSIGN_OR_RETURN(weight.layout, PackedLayout(dtype, ne));
    } else if (dtype != weight.layout.dtype) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor '", own, "' is ", AbslView(GetDTypeInfo(dtype).name),
                       ", the others of it ", AbslView(GetDTypeInfo(weight.layout.dtype).name)));
    }
    parts_.insert(own);
    weight.parts.push_back(own);
  }
  Add(std::move(weight));
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

std::vector<const GgufTensor*> WeightTable::TensorsOf(const Weight& weight) const {
  if (weight.parts.empty()) return {file_->FindTensor(weight.name)};
  std::vector<const GgufTensor*> tensors;
  tensors.reserve(weight.parts.size());
  for (const std::string& part : weight.parts) tensors.push_back(file_->FindTensor(part));
  return tensors;
}

std::vector<std::string> WeightTable::Unused() const {
  std::vector<std::string> names;
  for (const GgufTensor& tensor : file_->tensors()) {
    if (!index_.contains(tensor.name) && !parts_.contains(tensor.name))
      names.push_back(tensor.name);
  }
  return names;
}

}  // namespace weft
