#include "common/digest/file_identity.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/random.h"
#include "common/base/status_macros.h"
#include "common/gguf/gguf_reader.h"

namespace weft {
namespace {

// Raised when the way the identity is made changes: other identities for the same file.
constexpr std::string_view kMethod = "weft file identity 1";

uint64_t SeedOf(const Sha256Digest& digest) {
  uint64_t seed = 0;
  for (int i = 7; i >= 0; --i) seed = seed << 8 | digest.bytes[static_cast<size_t>(i)];
  return seed;
}

}  // namespace

absl::StatusOr<FileIdentity> IdentifyBytes(absl::Span<const uint8_t> bytes, int64_t data_offset) {
  FileIdentity identity;
  identity.size = static_cast<int64_t>(bytes.size());
  if (data_offset < 0 || data_offset > identity.size) {
    return absl::InvalidArgumentError(absl::StrCat("tensor data at byte ", data_offset,
                                                   " of a file of ", identity.size, " bytes"));
  }
  identity.data_offset = data_offset;
  identity.header = Sha256::Of(bytes.subspan(0, static_cast<size_t>(data_offset)));

  Sha256 hasher;
  hasher.Update(kMethod);
  hasher.UpdateInt(identity.size);
  hasher.Update(identity.header.bytes);
  // A block from each of as many equal stretches of the data; where these are short, all of them.
  Random random(SeedOf(identity.header));
  const int64_t data_bytes = identity.size - data_offset;
  const int64_t stretch = data_bytes / kIdentityBlockCount;
  for (int64_t i = 0; i < kIdentityBlockCount; ++i) {
    const int64_t first = data_offset + i * stretch;
    const int64_t room = i + 1 < kIdentityBlockCount ? stretch : identity.size - first;
    const int64_t length = std::min(room, kIdentityBlockBytes);
    const int64_t start = first + random.Between(0, room - length);
    hasher.UpdateInt(start);
    hasher.Update(bytes.subspan(static_cast<size_t>(start), static_cast<size_t>(length)));
  }
  identity.digest = hasher.Finish();
  return identity;
}

absl::StatusOr<FileIdentity> IdentifyGguf(absl::Span<const uint8_t> bytes,
                                          std::string_view file_name) {
  ASSIGN_OR_RETURN(const GgufContents contents, ReadGguf(bytes, file_name));
  // A file without tensors may end before its data section would start.
  return IdentifyBytes(bytes, std::min(contents.data_offset, static_cast<int64_t>(bytes.size())));
}

absl::StatusOr<FileIdentity> IdentifyGguf(const MappedFile& file) {
  return IdentifyGguf(file.bytes(), file.path());
}

absl::StatusOr<FileIdentity> IdentifyGguf(const GgufFile& model, int file_index) {
  return IdentifyBytes(model.file(file_index).bytes(), model.data_offset(file_index));
}

}  // namespace weft
