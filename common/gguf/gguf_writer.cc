#include "common/gguf/gguf_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <type_traits>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/checked_math.h"
#include "common/base/escaped_text.h"
#include "common/base/status_macros.h"
#include "common/base/utf8.h"
#include "common/gguf/gguf_format.h"

namespace weft {
namespace {

constexpr size_t kShownNameBytes = 80;

template <typename T>
void AppendScalar(T value, std::string* out) {
  out->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void AppendString(std::string_view text, std::string* out) {
  AppendScalar<uint64_t>(text.size(), out);
  out->append(text);
}

template <typename T>
void AppendElement(const T& value, std::string* out) {
  if constexpr (std::is_same_v<T, std::string>) {
    AppendString(value, out);
  } else if constexpr (std::is_same_v<T, bool>) {
    AppendScalar<uint8_t>(value ? 1 : 0, out);
  } else {
    AppendScalar(value, out);
  }
}

template <typename T>
constexpr GgufValueType TypeId() {
  if constexpr (std::is_same_v<T, uint8_t>) return GgufValueType::kU8;
  if constexpr (std::is_same_v<T, int8_t>) return GgufValueType::kI8;
  if constexpr (std::is_same_v<T, uint16_t>) return GgufValueType::kU16;
  if constexpr (std::is_same_v<T, int16_t>) return GgufValueType::kI16;
  if constexpr (std::is_same_v<T, uint32_t>) return GgufValueType::kU32;
  if constexpr (std::is_same_v<T, int32_t>) return GgufValueType::kI32;
  if constexpr (std::is_same_v<T, float>) return GgufValueType::kF32;
  if constexpr (std::is_same_v<T, bool>) return GgufValueType::kBool;
  if constexpr (std::is_same_v<T, std::string>) return GgufValueType::kString;
  if constexpr (std::is_same_v<T, uint64_t>) return GgufValueType::kU64;
  if constexpr (std::is_same_v<T, int64_t>) return GgufValueType::kI64;
  if constexpr (std::is_same_v<T, double>) return GgufValueType::kF64;
  if constexpr (std::is_same_v<T, GgufArray>) return GgufValueType::kArray;
}

template <typename T>
void AppendTypeId(std::string* out) {
  AppendScalar(static_cast<uint32_t>(TypeId<T>()), out);
}

absl::Status NameError(const char* what, std::string_view name, const std::string& why) {
  return absl::InvalidArgumentError(
      absl::StrCat(what, " '", EscapedText(name, kShownNameBytes), "': ", why));
}

absl::Status CheckName(const char* what, std::string_view name, int64_t max_length) {
  if (name.empty()) return NameError(what, name, "must not be empty");
  if (static_cast<int64_t>(name.size()) > max_length) {
    return NameError(what, name, absl::StrCat("longer than ", max_length, " bytes"));
  }
  if (!IsUtf8(name)) return NameError(what, name, "is not valid UTF-8");
  return absl::OkStatus();
}

absl::StatusOr<int64_t> Alignment(const GgufMetadata& metadata) {
  const GgufValue* value = metadata.Find(kGgufAlignmentKey);
  if (value == nullptr) return kGgufDefaultAlignment;
  const auto* alignment = std::get_if<uint32_t>(value);
  if (alignment == nullptr || !IsPowerOfTwo(*alignment) || *alignment < kGgufMinAlignment ||
      *alignment > kGgufMaxAlignment) {
    return NameError("key", kGgufAlignmentKey,
                     absl::StrCat("must be u32 and a power of two from ", kGgufMinAlignment, " to ",
                                  kGgufMaxAlignment));
  }
  return *alignment;
}

int64_t TensorBytes(const TensorLayout& layout) { return layout.nb[3] * layout.ne[3]; }

absl::Status CheckTensor(const GgufTensorSpec& tensor) {
  RETURN_IF_ERROR(CheckName("tensor", tensor.name, kGgufMaxTensorNameLength));
  for (const int64_t extent : tensor.layout.ne) {
    if (extent < 1) return NameError("tensor", tensor.name, "extents must be at least 1");
  }
  const absl::StatusOr<TensorLayout> packed = PackedLayout(tensor.layout.dtype, tensor.layout.ne);
  if (!packed.ok()) return NameError("tensor", tensor.name, std::string(packed.status().message()));
  if (*packed != tensor.layout) return NameError("tensor", tensor.name, "layout is not packed");
  return absl::OkStatus();
}

int DimensionCount(const Extents& ne) {
  int count = kGgufMaxDimensions;
  while (count > 1 && ne[count - 1] == 1) --count;
  return count;
}

absl::Status AppendTensorTable(absl::Span<const GgufTensorSpec> tensors, int64_t alignment,
                               std::string* out) {
  absl::flat_hash_set<absl::string_view> names;
  int64_t offset = 0;
  for (const GgufTensorSpec& tensor : tensors) {
    RETURN_IF_ERROR(CheckTensor(tensor));
    if (!names.insert(tensor.name).second) return NameError("tensor", tensor.name, "duplicate");
    AppendString(tensor.name, out);
    const int count = DimensionCount(tensor.layout.ne);
    AppendScalar<uint32_t>(count, out);
    for (int i = 0; i < count; ++i) AppendScalar<int64_t>(tensor.layout.ne[i], out);
    AppendScalar<uint32_t>(GetDTypeInfo(tensor.layout.dtype).gguf_id, out);
    AppendScalar<uint64_t>(offset, out);
    const std::optional<int64_t> end = CheckedAdd(offset, TensorBytes(tensor.layout));
    const std::optional<int64_t> next = end ? CheckedAlignUp(*end, alignment) : std::nullopt;
    if (!next) return NameError("tensor", tensor.name, "the size of the file overflows");
    offset = *next;
  }
  return absl::OkStatus();
}

absl::Status FileError(const std::string& path, const char* what, int error) {
  return absl::ErrnoToStatus(error, absl::StrCat(path, ": cannot ", what));
}

}  // namespace

void AppendGgufValue(const GgufValue& value, std::string* out) {
  std::visit(
      [&](const auto& held) {
        using T = std::decay_t<decltype(held)>;
        AppendTypeId<T>(out);
        if constexpr (std::is_same_v<T, GgufArray>) {
          std::visit(
              [&](const auto& elements) {
                using Element = typename std::decay_t<decltype(elements)>::value_type;
                AppendTypeId<Element>(out);
                AppendScalar<uint64_t>(elements.size(), out);
                for (const Element& element : elements) AppendElement<Element>(element, out);
              },
              held);
        } else {
          AppendElement<T>(held, out);
        }
      },
      value);
}

absl::StatusOr<std::string> GgufHeaderBytes(const GgufMetadata& metadata,
                                            absl::Span<const GgufTensorSpec> tensors) {
  ASSIGN_OR_RETURN(const int64_t alignment, Alignment(metadata));
  std::string out(kGgufMagic);
  AppendScalar<uint32_t>(kGgufVersion, &out);
  AppendScalar<int64_t>(tensors.size(), &out);
  AppendScalar<int64_t>(metadata.entries().size(), &out);
  for (const auto& [key, value] : metadata.entries()) {
    RETURN_IF_ERROR(CheckName("key", key, kGgufMaxKeyLength));
    AppendString(key, &out);
    AppendGgufValue(value, &out);
  }
  RETURN_IF_ERROR(AppendTensorTable(tensors, alignment, &out));
  out.resize(AlignUp(static_cast<int64_t>(out.size()), alignment), '\0');
  return out;
}

absl::StatusOr<std::unique_ptr<GgufWriter>> GgufWriter::Create(
    const std::string& path, const GgufMetadata& metadata, std::vector<GgufTensorSpec> tensors) {
  ASSIGN_OR_RETURN(const std::string header, GgufHeaderBytes(metadata, tensors));
  std::unique_ptr<GgufWriter> writer(new GgufWriter(path, std::move(tensors)));
  ASSIGN_OR_RETURN(writer->alignment_, Alignment(metadata));
  RETURN_IF_ERROR(writer->OpenTemporary());
  RETURN_IF_ERROR(writer->Write({reinterpret_cast<const uint8_t*>(header.data()), header.size()}));
  return writer;
}

GgufWriter::~GgufWriter() {
  if (descriptor_ >= 0) close(descriptor_);
  if (!temporary_path_.empty()) unlink(temporary_path_.c_str());
}

absl::Status GgufWriter::OpenTemporary() {
  // Renaming would put a file in the place of a device, a pipe or a link; only links are followed.
  char* const resolved = realpath(path_.c_str(), nullptr);
  if (resolved != nullptr) {
    path_ = resolved;
    free(resolved);
    struct stat info = {};
    if (stat(path_.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
      return absl::InvalidArgumentError(absl::StrCat(path_, ": exists and is not a regular file"));
    }
  }
  // The name is unique among running processes; what a killed one left behind is taken over.
  const std::string name = absl::StrCat(path_, ".", getpid(), ".tmp");
  descriptor_ = open(name.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor_ < 0) return FileError(name, "create", errno);
  temporary_path_ = name;
  return absl::OkStatus();
}

absl::Status GgufWriter::Write(absl::Span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return FileError(temporary_path_, "write", errno);
    position_ += written;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

absl::Status GgufWriter::Pad() {
  const std::vector<uint8_t> zeros(AlignUp(position_, alignment_) - position_, 0);
  return Write(zeros);
}

absl::Status GgufWriter::Append(absl::Span<const uint8_t> bytes) {
  if (descriptor_ < 0) return absl::FailedPreconditionError("the file is finished");
  while (!bytes.empty()) {
    if (tensor_index_ == static_cast<int>(tensors_.size())) {
      return absl::FailedPreconditionError(
          absl::StrCat(path_, ": ", bytes.size(), " bytes more than its tensors have"));
    }
    const int64_t size = TensorBytes(tensors_[tensor_index_].layout);
    const int64_t missing = size - tensor_bytes_written_;
    const size_t step = std::min(bytes.size(), static_cast<size_t>(missing));
    RETURN_IF_ERROR(Write(bytes.first(step)));
    bytes.remove_prefix(step);
    tensor_bytes_written_ += static_cast<int64_t>(step);
    if (tensor_bytes_written_ < size) break;
    RETURN_IF_ERROR(Pad());
    ++tensor_index_;
    tensor_bytes_written_ = 0;
  }
  return absl::OkStatus();
}

absl::Status GgufWriter::Finish() {
  if (descriptor_ < 0) return absl::FailedPreconditionError("the file is finished");
  if (tensor_index_ < static_cast<int>(tensors_.size())) {
    return absl::FailedPreconditionError(absl::StrCat(
        path_, ": tensor '", EscapedText(tensors_[tensor_index_].name, kShownNameBytes),
        "' is incomplete"));
  }
  const int closed = close(descriptor_);
  descriptor_ = -1;
  if (closed != 0) return FileError(temporary_path_, "close", errno);
  if (rename(temporary_path_.c_str(), path_.c_str()) != 0) {
    return FileError(path_, "rename into place", errno);
  }
  temporary_path_.clear();
  return absl::OkStatus();
}

absl::Status WriteGgufFile(const std::string& path, const GgufMetadata& metadata,
                           std::vector<GgufTensorSpec> tensors,
                           absl::Span<const absl::Span<const uint8_t>> data) {
  if (data.size() != tensors.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", data.size(), " pieces of data for ", tensors.size(), " tensors"));
  }
  for (size_t i = 0; i < data.size(); ++i) {
    RETURN_IF_ERROR(CheckTensor(tensors[i]));
    if (static_cast<int64_t>(data[i].size()) == TensorBytes(tensors[i].layout)) continue;
    return NameError(
        "tensor", tensors[i].name,
        absl::StrCat(data[i].size(), " bytes of data, want ", TensorBytes(tensors[i].layout)));
  }
  ASSIGN_OR_RETURN(const auto writer, GgufWriter::Create(path, metadata, std::move(tensors)));
  for (const absl::Span<const uint8_t> bytes : data) RETURN_IF_ERROR(writer->Append(bytes));
  return writer->Finish();
}

}  // namespace weft
