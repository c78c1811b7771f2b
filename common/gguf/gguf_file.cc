#include "common/gguf/gguf_file.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/escaped_text.h"
#include "common/base/status_macros.h"
#include "common/gguf/gguf_format.h"
#include "common/gguf/gguf_split.h"
#include "common/gguf/gguf_value_text.h"
#include "common/gguf/gguf_writer.h"

namespace weft {
namespace {

constexpr size_t kShownPathBytes = 1024;
constexpr size_t kShownTextBytes = 80;

struct Part {
  std::unique_ptr<MappedFile> file;
  GgufContents contents;
};

// The keys of spec F.10.
struct SplitKeys {
  int64_t number = 0;
  int64_t count = 0;
  int64_t tensors = 0;  // of the whole set
};

absl::Status FieldError(std::string_view path, std::string_view field, const std::string& value,
                        const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat(
      EscapedText(path, kShownPathBytes), ": field '", EscapedText(field, kShownTextBytes),
      "' = ", EscapedText(value, kShownTextBytes), ": ", why));
}

absl::StatusOr<Part> OpenPart(const std::string& path) {
  Part part;
  ASSIGN_OR_RETURN(part.file, MappedFile::Open(path));
  ASSIGN_OR_RETURN(part.contents, ReadGguf(part.file->bytes(), path));
  return part;
}

// Nothing if the file has none of the keys.
absl::StatusOr<std::optional<SplitKeys>> ReadSplitKeys(const Part& part) {
  const GgufMetadata& metadata = part.contents.metadata;
  const std::string& path = part.file->path();
  SplitKeys keys;
  const std::pair<std::string_view, int64_t*> fields[] = {
      {kGgufSplitNumberKey, &keys.number},
      {kGgufSplitCountKey, &keys.count},
      {kGgufSplitTensorCountKey, &keys.tensors}};
  int found = 0;
  for (const auto& [key, value] : fields) found += metadata.Has(key) ? 1 : 0;
  if (found == 0) return std::nullopt;
  for (const auto& [key, value] : fields) {
    const absl::StatusOr<int64_t> integer = metadata.Integer(key);
    if (!integer.ok()) {
      return FieldError(path, key, metadata.Has(key) ? "another type" : "nothing",
                        std::string(integer.status().message()));
    }
    if (*integer < 0) return FieldError(path, key, absl::StrCat(*integer), "must not be negative");
    *value = *integer;
  }
  if (keys.count < 1 || keys.count > kGgufMaxSplitCount) {
    return FieldError(path, kGgufSplitCountKey, absl::StrCat(keys.count),
                      absl::StrCat("must be from 1 to ", kGgufMaxSplitCount));
  }
  if (keys.number >= keys.count) {
    return FieldError(path, kGgufSplitNumberKey, absl::StrCat(keys.number),
                      absl::StrCat("must be below split.count, which is ", keys.count));
  }
  return keys;
}

// Checks that the path of the file that the user named says the same as its keys.
absl::Status CheckName(const std::string& path, const std::optional<GgufSplitName>& name,
                       const SplitKeys& keys) {
  if (!name) {
    return FieldError(path, kGgufSplitCountKey, absl::StrCat(keys.count),
                      "a part of a split model must be named PREFIX-00001-of-00003.gguf, so that "
                      "the other parts can be found");
  }
  if (name->count != keys.count) {
    return FieldError(path, kGgufSplitCountKey, absl::StrCat(keys.count),
                      absl::StrCat("the file's name says ", name->count, " parts"));
  }
  if (name->number != keys.number) {
    return FieldError(path, kGgufSplitNumberKey, absl::StrCat(keys.number),
                      absl::StrCat("the file's name says part ", name->number + 1,
                                   ", which has split.no ", name->number));
  }
  return absl::OkStatus();
}

bool SameValue(const GgufValue& a, const GgufValue& b) {
  if (a.index() != b.index()) return false;
  // As bytes, because a NaN differs from itself.
  std::string a_bytes;
  std::string b_bytes;
  AppendGgufValue(a, &a_bytes);
  AppendGgufValue(b, &b_bytes);
  return a_bytes == b_bytes;
}

// Checks that a later part belongs to the same model as the first: where both have a key, its
// values are equal. (Later parts usually have only the split keys.)
absl::Status CheckSameModel(const Part& first, const Part& part) {
  for (const auto& [key, value] : part.contents.metadata.entries()) {
    if (key == kGgufSplitNumberKey || key == kGgufAlignmentKey) continue;
    const GgufValue* wanted = first.contents.metadata.Find(key);
    if (wanted == nullptr || SameValue(*wanted, value)) continue;
    return FieldError(part.file->path(), key, GgufValueText(value, {}),
                      absl::StrCat("the first part of this model, ",
                                   EscapedText(first.file->path(), kShownPathBytes), ", has ",
                                   GgufValueText(*wanted, {})));
  }
  return absl::OkStatus();
}

absl::Status CheckPart(const Part& first, const Part& part, const SplitKeys& wanted) {
  const std::string& path = part.file->path();
  ASSIGN_OR_RETURN(const std::optional<SplitKeys> keys, ReadSplitKeys(part));
  if (!keys) {
    return FieldError(path, kGgufSplitCountKey, "nothing",
                      absl::StrCat("missing, though this is part ", wanted.number + 1, " of ",
                                   wanted.count, " of a split model"));
  }
  const auto check = [&](std::string_view key, int64_t value, int64_t expected) {
    if (value == expected) return absl::OkStatus();
    return FieldError(path, key, absl::StrCat(value),
                      absl::StrCat("want ", expected, " in part ", wanted.number + 1, " of ",
                                   wanted.count, " of this model"));
  };
  RETURN_IF_ERROR(check(kGgufSplitNumberKey, keys->number, wanted.number));
  RETURN_IF_ERROR(check(kGgufSplitCountKey, keys->count, wanted.count));
  RETURN_IF_ERROR(check(kGgufSplitTensorCountKey, keys->tensors, wanted.tensors));
  return CheckSameModel(first, part);
}

// All parts of the set that `opened`, whose keys are `keys`, is one of.
absl::StatusOr<std::vector<Part>> OpenParts(Part opened, const std::string& prefix,
                                            const SplitKeys& keys) {
  std::vector<Part> parts(keys.count);
  parts[keys.number] = std::move(opened);
  for (int64_t i = 0; i < keys.count; ++i) {
    if (i != keys.number) {
      const std::string path = GgufSplitPath(prefix, i, keys.count);
      absl::StatusOr<Part> part = OpenPart(path);
      if (absl::IsNotFound(part.status())) {
        return absl::NotFoundError(absl::StrCat(EscapedText(path, kShownPathBytes),
                                                ": missing: part ", i + 1, " of ", keys.count,
                                                " of a split model"));
      }
      if (!part.ok()) return part.status();
      parts[i] = *std::move(part);
    }
    SplitKeys wanted = keys;
    wanted.number = i;
    RETURN_IF_ERROR(CheckPart(parts[0], parts[i], wanted));
    // Only the first part's metadata is kept.
    if (i > 0) parts[i].contents.metadata = GgufMetadata();
  }
  return parts;
}

}  // namespace

absl::StatusOr<std::unique_ptr<GgufFile>> GgufFile::Open(const std::string& path) {
  ASSIGN_OR_RETURN(Part opened, OpenPart(path));
  ASSIGN_OR_RETURN(const std::optional<SplitKeys> keys, ReadSplitKeys(opened));
  const std::optional<GgufSplitName> name = ParseGgufSplitPath(path);
  std::vector<Part> parts;
  if (keys && keys->count > 1) {
    RETURN_IF_ERROR(CheckName(path, name, *keys));
    ASSIGN_OR_RETURN(parts, OpenParts(std::move(opened), name->prefix, *keys));
  } else {
    if (!keys && name && name->count > 1) {
      return FieldError(path, kGgufSplitCountKey, "nothing",
                        absl::StrCat("missing, though the file's name says part ", name->number + 1,
                                     " of ", name->count));
    }
    parts.push_back(std::move(opened));
  }
  std::unique_ptr<GgufFile> result(new GgufFile());
  result->version_ = parts[0].contents.version;
  result->metadata_ = std::move(parts[0].contents.metadata);
  for (Part& part : parts) {
    RETURN_IF_ERROR(result->AddPart(std::move(part.file), std::move(part.contents)));
  }
  const int64_t tensor_count = static_cast<int64_t>(result->tensors_.size());
  if (keys && keys->tensors != tensor_count) {
    return FieldError(path, kGgufSplitTensorCountKey, absl::StrCat(keys->tensors),
                      absl::StrCat("the parts have ", tensor_count, " tensors"));
  }
  return result;
}

absl::Status GgufFile::AddPart(std::unique_ptr<MappedFile> file, GgufContents contents) {
  const int file_index = static_cast<int>(files_.size());
  // A file without tensors may end before its data section would start.
  data_offsets_.push_back(
      std::min(contents.data_offset, static_cast<int64_t>(file->bytes().size())));
  files_.push_back(std::move(file));
  tensors_.reserve(tensors_.size() + contents.tensors.size());
  for (GgufTensor& tensor : contents.tensors) {
    const auto [position, inserted] = index_.try_emplace(tensor.name, tensors_.size());
    if (!inserted) {
      const int other = tensors_[position->second].file_index;
      return FieldError(files_.back()->path(), "tensor name", tensor.name,
                        absl::StrCat("duplicate tensor: also in ",
                                     EscapedText(files_[other]->path(), kShownPathBytes)));
    }
    tensor.file_index = file_index;
    tensors_.push_back(std::move(tensor));
  }
  return absl::OkStatus();
}

const GgufTensor* GgufFile::FindTensor(std::string_view name) const {
  const auto found = index_.find(AbslView(name));
  return found == index_.end() ? nullptr : &tensors_[found->second];
}

absl::Span<const uint8_t> GgufFile::TensorBytes(const GgufTensor& tensor) const {
  return files_[tensor.file_index]->bytes().subspan(tensor.file_offset, tensor.bytes);
}

}  // namespace weft
