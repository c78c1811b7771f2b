#include "coordinator/cli/commands/inspect.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/absl_view.h"
#include "common/base/escaped_text.h"
#include "common/base/status_macros.h"
#include "common/gguf/gguf_value_text.h"
#include "coordinator/cli/commands/inspect_report.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

constexpr GgufTextLimits kTextLimits = {.string_bytes = 120, .array_elements = 6};
constexpr size_t kMaxPathBytes = 1024;
constexpr size_t kMaxNameBytes = 256;
// Keys may have 65535 bytes; those of models are far shorter.
constexpr size_t kMaxKeyBytes = 128;

std::string Shown(std::string_view text) { return EscapedText(text, kMaxNameBytes); }

double Share(int64_t part, int64_t whole) {
  return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}

double BitsPerElement(const InspectTypeSum& sum) { return 8.0 * Share(sum.bytes, sum.elements); }

void WriteMetadataText(const GgufFile& file, std::ostream& out) {
  out << "\nmetadata: " << file.metadata().entries().size() << " keys\n";
  for (const auto& [key, value] : file.metadata().entries()) {
    out << absl::StrFormat("  %-40s %-10s %s\n", EscapedText(key, kMaxKeyBytes),
                           GgufTypeText(value), GgufValueText(value, kTextLimits));
  }
}

void WriteTensorsText(const GgufFile& file, std::ostream& out) {
  out << "\ntensors: " << file.tensors().size() << "\n";
  int width = 4;
  for (const GgufTensor& tensor : file.tensors()) {
    width = std::max(width, static_cast<int>(tensor.name.size()));
  }
  out << absl::StrFormat("  %-*s %-8s %-24s %14s %14s%s\n", width, "name", "type", "shape", "bytes",
                         "offset", file.file_count() > 1 ? "  part" : "");
  for (const GgufTensor& tensor : file.tensors()) {
    out << absl::StrFormat("  %-*s %-8s %-24s %14d %14d", width, Shown(tensor.name),
                           AbslView(DTypeName(tensor.layout.dtype)), ExtentsText(tensor.layout.ne),
                           tensor.bytes, tensor.file_offset);
    if (file.file_count() > 1) out << absl::StrFormat("  %4d", tensor.file_index + 1);
    out << "\n";
  }
}

void WriteSumsText(const InspectReport& report, std::ostream& out) {
  out << "\nsizes by type:\n";
  for (const auto& [dtype, sum] : report.types) {
    out << absl::StrFormat("  %-8s %6d tensors %16d elements %16d bytes %6.2f bits each %5.1f %%\n",
                           AbslView(DTypeName(dtype)), sum.tensors, sum.elements, sum.bytes,
                           BitsPerElement(sum), 100.0 * Share(sum.bytes, report.total.bytes));
  }
  out << absl::StrFormat("  %-8s %6d tensors %16d elements %16d bytes %6.2f bits each\n", "total",
                         report.total.tensors, report.total.elements, report.total.bytes,
                         BitsPerElement(report.total));
}

void WriteSupportText(const InspectSupport& support, std::ostream& out) {
  out << "\nwhat weft can do with it:\n  architecture: "
      << (support.architecture.empty() ? "none" : Shown(support.architecture))
      << (support.architecture_supported ? " (supported)\n" : " (not supported)\n");
  out << "  tensor types: ";
  if (support.types_without_codec.empty()) {
    out << "all computable\n";
  } else {
    out << "not computable:";
    for (const DType dtype : support.types_without_codec) out << " " << DTypeName(dtype);
    out << "\n";
  }
  out << "  tokenizer: ";
  if (support.tokenizer_model.empty()) {
    out << "none\n";
  } else {
    out << "model " << Shown(support.tokenizer_model) << ", pre "
        << (support.tokenizer_pre.empty() ? "none" : Shown(support.tokenizer_pre)) << ", "
        << support.token_count << " tokens, " << (support.chat_template ? "a" : "no")
        << " chat template\n";
  }
  out << (support.obstacles.empty() ? "  weft can run it\n" : "  weft cannot run it:\n");
  for (const std::string& obstacle : support.obstacles) out << "    " << obstacle << "\n";
}

void WriteProblemsText(const std::vector<InspectProblem>& problems, std::ostream& out) {
  out << "\ndata check: " << problems.size() << " bad tensors\n";
  for (const InspectProblem& problem : problems) {
    out << "  " << Shown(problem.tensor) << ": " << problem.problem << "\n";
  }
}

// The value as JSON: numbers, booleans and strings as such, an array's first elements. (Text that
// is not UTF-8 is repaired when the object is written; NaN and infinity become null.)
Json ValueJson(const GgufValue& value) {
  return std::visit(
      [](const auto& held) -> Json {
        using T = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<T, GgufArray>) {
          return std::visit(
              [](const auto& elements) {
                using Element = typename std::decay_t<decltype(elements)>::value_type;
                Json shown = Json::array();
                const size_t count = std::min(elements.size(), kTextLimits.array_elements);
                for (size_t i = 0; i < count; ++i)
                  shown.push_back(static_cast<Element>(elements[i]));
                return shown;
              },
              held);
        } else {
          return Json(held);
        }
      },
      value);
}

Json MetadataJson(const GgufFile& file) {
  Json list = Json::array();
  for (const auto& [key, value] : file.metadata().entries()) {
    Json entry = {{"key", key}, {"type", GgufTypeText(value)}, {"value", ValueJson(value)}};
    if (const auto* array = std::get_if<GgufArray>(&value)) {
      entry["count"] = std::visit([](const auto& elements) { return elements.size(); }, *array);
    }
    list.push_back(std::move(entry));
  }
  return list;
}

Json TensorsJson(const GgufFile& file) {
  Json list = Json::array();
  for (const GgufTensor& tensor : file.tensors()) {
    list.push_back({{"name", tensor.name},
                    {"type", DTypeName(tensor.layout.dtype)},
                    {"shape", tensor.layout.ne},
                    {"bytes", tensor.bytes},
                    {"offset", tensor.file_offset},
                    {"file", tensor.file_index}});
  }
  return list;
}

Json SumJson(const InspectTypeSum& sum) {
  return {{"tensors", sum.tensors}, {"elements", sum.elements}, {"bytes", sum.bytes}};
}

Json SupportJson(const InspectSupport& support) {
  Json types = Json::array();
  for (const DType dtype : support.types_without_codec) types.push_back(DTypeName(dtype));
  return {{"can_run", support.obstacles.empty()},
          {"obstacles", support.obstacles},
          {"architecture", support.architecture},
          {"architecture_supported", support.architecture_supported},
          {"types_not_computable", std::move(types)},
          {"tokenizer",
           {{"model", support.tokenizer_model},
            {"pre", support.tokenizer_pre},
            {"tokens", support.token_count},
            {"chat_template", support.chat_template}}}};
}

void WriteJson(const GgufFile& file, const InspectReport& report,
               const std::optional<std::vector<InspectProblem>>& problems, std::ostream& out) {
  Json files = Json::array();
  for (int i = 0; i < file.file_count(); ++i) {
    files.push_back({{"path", file.file(i).path()}, {"bytes", file.file(i).bytes().size()}});
  }
  Json types = Json::object();
  for (const auto& [dtype, sum] : report.types) types[std::string(DTypeName(dtype))] = SumJson(sum);
  Json object = {{"files", std::move(files)},
                 {"version", file.version()},
                 {"metadata", MetadataJson(file)},
                 {"tensors", TensorsJson(file)},
                 {"types", std::move(types)},
                 {"totals", SumJson(report.total)},
                 {"support", SupportJson(report.support)}};
  if (problems) {
    Json list = Json::array();
    for (const InspectProblem& problem : *problems) {
      list.push_back({{"tensor", problem.tensor}, {"problem", problem.problem}});
    }
    object["check"] = std::move(list);
  }
  out << object.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
}

void WriteText(const GgufFile& file, const InspectReport& report,
               const std::optional<std::vector<InspectProblem>>& problems, std::ostream& out) {
  for (int i = 0; i < file.file_count(); ++i) {
    out << "file: " << EscapedText(file.file(i).path(), kMaxPathBytes) << " ("
        << file.file(i).bytes().size() << " bytes)\n";
  }
  out << "format: GGUF version " << file.version() << ", " << report.file_bytes << " bytes in "
      << file.file_count() << (file.file_count() == 1 ? " file\n" : " files\n");
  WriteMetadataText(file, out);
  WriteTensorsText(file, out);
  WriteSumsText(report, out);
  WriteSupportText(report.support, out);
  if (problems) WriteProblemsText(*problems, out);
}

}  // namespace

absl::Status InspectFile(const std::string& path, const InspectOptions& options,
                         std::ostream& out) {
  ASSIGN_OR_RETURN(const auto file, GgufFile::Open(path));
  InspectReport report = MakeInspectReport(*file, options.supported_architectures);
  if (report.support.obstacles.empty() && options.find_obstacles) {
    for (const std::string& obstacle : options.find_obstacles(*file)) {
      report.support.obstacles.push_back(EscapedText(obstacle, kMaxPathBytes));
    }
  }
  std::optional<std::vector<InspectProblem>> problems;
  if (options.check) problems = FindDataProblems(*file);
  if (options.json) {
    WriteJson(*file, report, problems, out);
  } else {
    WriteText(*file, report, problems, out);
  }
  if (!problems || problems->empty()) return absl::OkStatus();
  const InspectProblem& first = problems->front();
  return absl::InvalidArgumentError(absl::StrCat(EscapedText(path, kMaxPathBytes), ": ",
                                                 problems->size(), " bad tensors; the first is '",
                                                 Shown(first.tensor), "': ", first.problem));
}

}  // namespace weft
