#include "common/gguf/gguf_reader.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/checked_math.h"
#include "common/base/escaped_text.h"
#include "common/base/status_macros.h"
#include "common/gguf/gguf_cursor.h"
#include "common/gguf/gguf_format.h"
#include "common/gguf/gguf_metadata_reader.h"

namespace weft {
namespace {

// Upper bound of what a tensor costs in memory besides its name: the entry, its row in the index by
// name and, while the file is read, its rows in the set that finds duplicates and in the order by
// offset.
constexpr int64_t kTensorCost = sizeof(GgufTensor) + 192;

struct Counts {
  int version = 0;
  int64_t tensors = 0;
  int64_t keys = 0;
};

absl::StatusOr<int64_t> ReadCount(GgufCursor& cursor, const GgufField& field, int64_t entry_bytes) {
  const int64_t at = cursor.position();
  ASSIGN_OR_RETURN(const int64_t count, cursor.Scalar<int64_t>(field));
  if (count < 0) return cursor.Error(field, absl::StrCat(count), "negative or beyond 2^63", at);
  // What the file could hold after its fixed header.
  const int64_t most = (cursor.size() - kGgufHeaderBytes) / entry_bytes;
  if (count > most) {
    return cursor.Error(field, absl::StrCat(count),
                        absl::StrCat("a file of ", cursor.size(), " bytes holds at most ", most),
                        at);
  }
  return count;
}

// Rules 1 and 2 of spec H.2.
absl::StatusOr<Counts> ReadHeader(GgufCursor& cursor) {
  Counts counts;
  ASSIGN_OR_RETURN(const auto magic_bytes, cursor.Bytes({"magic"}, kGgufMagic.size()));
  const std::string_view magic(reinterpret_cast<const char*>(magic_bytes.data()),
                               magic_bytes.size());
  if (magic != kGgufMagic) {
    return cursor.Error({"magic"}, std::string(magic), "not a GGUF file, want 'GGUF'", 0);
  }
  if (cursor.size() < kGgufHeaderBytes) {
    return cursor.Error({"file size"}, absl::StrCat(cursor.size()),
                        absl::StrCat("a header has ", kGgufHeaderBytes, " bytes"), cursor.size());
  }
  const int64_t at = cursor.position();
  ASSIGN_OR_RETURN(const uint32_t version, cursor.Scalar<uint32_t>({"version"}));
  if (version != 0 && (version & 0xFFFF) == 0) {
    return cursor.Error({"version"}, absl::StrCat(version), "big-endian files are not supported",
                        at);
  }
  if (version < kGgufOldestVersion || version > kGgufVersion) {
    return cursor.Error(
        {"version"}, absl::StrCat(version),
        absl::StrCat("not supported, want ", kGgufOldestVersion, " or ", kGgufVersion), at);
  }
  counts.version = static_cast<int>(version);
  ASSIGN_OR_RETURN(counts.tensors, ReadCount(cursor, {"tensor count"}, kGgufMinTensorBytes));
  ASSIGN_OR_RETURN(counts.keys, ReadCount(cursor, {"key count"}, kGgufMinKeyBytes));
  return counts;
}

absl::StatusOr<Extents> ReadExtents(GgufCursor& cursor, std::string_view name) {
  constexpr std::string_view kSuffixes[kGgufMaxDimensions] = {" extent 0", " extent 1", " extent 2",
                                                              " extent 3"};
  const GgufField count_field{"tensor ", name, -1, " dimension count"};
  const int64_t count_at = cursor.position();
  ASSIGN_OR_RETURN(const uint32_t count, cursor.Scalar<uint32_t>(count_field));
  if (count > kGgufMaxDimensions) {
    return cursor.Error(count_field, absl::StrCat(count),
                        absl::StrCat("more than ", kGgufMaxDimensions), count_at);
  }
  Extents ne = {1, 1, 1, 1};
  int64_t elements = 1;
  for (uint32_t i = 0; i < count; ++i) {
    const GgufField field{"tensor ", name, -1, kSuffixes[i]};
    const int64_t at = cursor.position();
    ASSIGN_OR_RETURN(ne[i], cursor.Scalar<int64_t>(field));
    if (ne[i] < 1) return cursor.Error(field, absl::StrCat(ne[i]), "must be at least 1", at);
    const std::optional<int64_t> product = CheckedMultiply(elements, ne[i]);
    if (!product) {
      return cursor.Error(field, absl::StrCat(ne[i]), "the number of elements overflows", at);
    }
    elements = *product;
  }
  return ne;
}

absl::StatusOr<DType> ReadTensorType(GgufCursor& cursor, std::string_view name) {
  constexpr int kRemovedIds[] = {4, 5, 31, 32, 33, 36, 37, 38};
  const GgufField field{"tensor ", name, -1, " type"};
  const int64_t at = cursor.position();
  ASSIGN_OR_RETURN(const uint32_t id, cursor.Scalar<uint32_t>(field));
  const std::optional<DType> dtype = DTypeFromGgufId(id);
  if (dtype) return *dtype;
  const bool removed = std::find(std::begin(kRemovedIds), std::end(kRemovedIds),
                                 static_cast<int64_t>(id)) != std::end(kRemovedIds);
  return cursor.Error(
      field, absl::StrCat(id),
      removed ? "this tensor type was removed from the format" : "unknown tensor type", at);
}

// Rules 7 to 10 of spec H.2 for one entry of the tensor table. file_offset is left as the file has
// it: relative to the data section, not yet checked against the file's size.
absl::StatusOr<GgufTensor> ReadTensor(GgufCursor& cursor, std::string_view name,
                                      int64_t alignment) {
  GgufTensor tensor;
  tensor.name = std::string(name);
  const int64_t extents_at = cursor.position();
  ASSIGN_OR_RETURN(const Extents ne, ReadExtents(cursor, name));
  ASSIGN_OR_RETURN(const DType dtype, ReadTensorType(cursor, name));
  const GgufField shape{"tensor ", name, -1, " shape"};
  if (ne[0] % GetDTypeInfo(dtype).block_elements != 0) {
    return cursor.Error(
        shape, ExtentsText(ne),
        absl::StrCat("extent 0 must be a multiple of ", GetDTypeInfo(dtype).block_elements,
                     ", the block of ", AbslView(DTypeName(dtype))),
        extents_at);
  }
  absl::StatusOr<TensorLayout> layout = PackedLayout(dtype, ne);
  if (!layout.ok()) {
    return cursor.Error(shape, ExtentsText(ne), "the number of bytes overflows", extents_at);
  }
  tensor.layout = *layout;
  // PackedLayout has checked this product.
  tensor.bytes = layout->nb[3] * ne[3];
  const GgufField offset_field{"tensor ", name, -1, " offset"};
  const int64_t offset_at = cursor.position();
  ASSIGN_OR_RETURN(const uint64_t offset, cursor.Scalar<uint64_t>(offset_field));
  if (offset % static_cast<uint64_t>(alignment) != 0) {
    return cursor.Error(offset_field, absl::StrCat(offset),
                        absl::StrCat("not a multiple of the alignment ", alignment), offset_at);
  }
  if (offset > static_cast<uint64_t>(cursor.size())) {
    return cursor.Error(offset_field, absl::StrCat(offset),
                        absl::StrCat("beyond the file's end at ", cursor.size()), offset_at);
  }
  tensor.file_offset = static_cast<int64_t>(offset);
  return tensor;
}

absl::StatusOr<std::vector<GgufTensor>> ReadTensorTable(GgufCursor& cursor, int64_t count,
                                                        int64_t alignment) {
  RETURN_IF_ERROR(cursor.Charge({"tensor count"}, count * kTensorCost));
  std::vector<GgufTensor> tensors;
  tensors.reserve(count);
  absl::flat_hash_set<absl::string_view> names;
  for (int64_t i = 0; i < count; ++i) {
    const GgufField field{"tensor ", "", i, " name"};
    const int64_t at = cursor.position();
    ASSIGN_OR_RETURN(const std::string_view name, cursor.Name(field, kGgufMaxTensorNameLength));
    if (!names.insert(AbslView(name)).second) {
      return cursor.Error(field, std::string(name), "duplicate tensor name", at);
    }
    RETURN_IF_ERROR(cursor.Charge(field, 2 * GgufStringCost(name.size())));
    ASSIGN_OR_RETURN(GgufTensor tensor, ReadTensor(cursor, name, alignment));
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

// Rules 11 to 13 of spec H.2; makes offsets count from the start of the file.
absl::Status PlaceTensors(const GgufCursor& cursor, int64_t data_offset,
                          std::vector<GgufTensor>& tensors) {
  for (GgufTensor& tensor : tensors) {
    const GgufField field{"tensor ", tensor.name, -1, " offset"};
    const std::optional<int64_t> begin = CheckedAdd(data_offset, tensor.file_offset);
    const std::optional<int64_t> end = begin ? CheckedAdd(*begin, tensor.bytes) : std::nullopt;
    if (!end || *end > cursor.size()) {
      return cursor.Error(field, absl::StrCat(tensor.file_offset),
                          absl::StrCat("its ", tensor.bytes, " bytes from byte ", begin.value_or(0),
                                       " reach beyond the file's end at ", cursor.size()),
                          begin.value_or(0));
    }
    tensor.file_offset = *begin;
  }
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return tensors[a].file_offset < tensors[b].file_offset; });
  for (size_t i = 1; i < order.size(); ++i) {
    const GgufTensor& before = tensors[order[i - 1]];
    const GgufTensor& after = tensors[order[i]];
    if (before.file_offset + before.bytes <= after.file_offset) continue;
    return cursor.Error(
        {"tensor ", after.name, -1, " offset"}, absl::StrCat(after.file_offset - data_offset),
        absl::StrCat("overlaps tensor '", EscapedText(before.name, 63), "'"), after.file_offset);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<GgufContents> ReadGguf(absl::Span<const uint8_t> bytes, std::string_view file_name,
                                      int64_t memory_allowance_bytes) {
  GgufCursor cursor(bytes, file_name, memory_allowance_bytes);
  ASSIGN_OR_RETURN(const Counts counts, ReadHeader(cursor));
  GgufContents contents;
  contents.version = counts.version;
  ASSIGN_OR_RETURN(contents.metadata, ReadGgufMetadata(cursor, counts.keys));
  ASSIGN_OR_RETURN(contents.alignment,
                   contents.metadata.IntegerOr(kGgufAlignmentKey, kGgufDefaultAlignment));
  ASSIGN_OR_RETURN(contents.tensors, ReadTensorTable(cursor, counts.tensors, contents.alignment));
  contents.data_offset = AlignUp(cursor.position(), contents.alignment);
  RETURN_IF_ERROR(PlaceTensors(cursor, contents.data_offset, contents.tensors));
  return contents;
}

}  // namespace weft
