#include "coordinator/cli/commands/inspect_report.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/absl_view.h"
#include "common/base/escaped_text.h"
#include "common/gguf/tensor_data_check.h"

namespace weft {
namespace {

constexpr size_t kShownBytes = 80;

// The string of `key`, or nothing if it is absent or of another type: a listing goes on where
// loading would stop.
std::string TextOrNothing(const GgufMetadata& metadata, std::string_view key) {
  const auto text = metadata.String(key);
  return text.ok() ? std::string(*text) : std::string();
}

void AddObstacles(const InspectReport& report,
                  absl::Span<const std::string> supported_architectures, InspectSupport& support) {
  if (support.architecture.empty()) {
    support.obstacles.push_back("the file names no architecture (general.architecture)");
  } else if (!support.architecture_supported) {
    support.obstacles.push_back(absl::StrCat(
        "architecture '", EscapedText(support.architecture, kShownBytes),
        "' is not among those supported: ", absl::StrJoin(supported_architectures, ", ")));
  }
  for (const DType dtype : support.types_without_codec) {
    support.obstacles.push_back(absl::StrCat("weft cannot compute with ",
                                             AbslView(DTypeName(dtype)), " (",
                                             report.types.at(dtype).tensors, " tensors)"));
  }
  if (report.total.tensors == 0) support.obstacles.push_back("the file has no tensors");
  if (support.tokenizer_model.empty()) {
    support.obstacles.push_back("the file has no tokenizer (tokenizer.ggml.model)");
  }
}

InspectSupport MakeSupport(const GgufFile& file, const InspectReport& report,
                           absl::Span<const std::string> supported_architectures) {
  const GgufMetadata& metadata = file.metadata();
  InspectSupport support;
  support.architecture = TextOrNothing(metadata, "general.architecture");
  support.architecture_supported =
      std::find(supported_architectures.begin(), supported_architectures.end(),
                support.architecture) != supported_architectures.end();
  for (const auto& [dtype, sum] : report.types) {
    if (!GetDTypeInfo(dtype).codec) support.types_without_codec.push_back(dtype);
  }
  support.tokenizer_model = TextOrNothing(metadata, "tokenizer.ggml.model");
  support.tokenizer_pre = TextOrNothing(metadata, "tokenizer.ggml.pre");
  const auto tokens = metadata.Strings("tokenizer.ggml.tokens");
  if (tokens.ok()) support.token_count = static_cast<int64_t>(tokens->size());
  support.chat_template = metadata.Has("tokenizer.chat_template");
  AddObstacles(report, supported_architectures, support);
  return support;
}

}  // namespace

InspectReport MakeInspectReport(const GgufFile& file,
                                absl::Span<const std::string> supported_architectures) {
  InspectReport report;
  for (const GgufTensor& tensor : file.tensors()) {
    // The tensors lie side by side in files, so the sum of their bytes cannot overflow; nor can
    // that of their elements, since no type has more than 8 per byte.
    for (InspectTypeSum* sum : {&report.types[tensor.layout.dtype], &report.total}) {
      sum->tensors += 1;
      sum->elements += ElementCount(tensor.layout);
      sum->bytes += tensor.bytes;
    }
  }
  for (int i = 0; i < file.file_count(); ++i) {
    report.file_bytes += static_cast<int64_t>(file.file(i).bytes().size());
  }
  report.support = MakeSupport(file, report, supported_architectures);
  return report;
}

std::vector<InspectProblem> FindDataProblems(const GgufFile& file) {
  std::vector<InspectProblem> problems;
  for (const GgufTensor& tensor : file.tensors()) {
    const absl::Status status = CheckTensorData(tensor.layout.dtype, file.TensorBytes(tensor));
    if (!status.ok()) problems.push_back({tensor.name, std::string(status.message())});
  }
  return problems;
}

}  // namespace weft
