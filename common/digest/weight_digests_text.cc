// The text form of digests: a writer and a reader that trusts nothing.
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/checked_math.h"
#include "common/base/escaped_text.h"
#include "common/base/status_macros.h"
#include "common/digest/weight_digests.h"
#include "common/gguf/gguf_format.h"

namespace weft {
namespace {

constexpr std::string_view kFirstLine = "weft-digest 1";
constexpr size_t kShownBytes = 40;
constexpr size_t kMaxNameBytes = 4 * kGgufMaxTensorNameLength;  // each byte escaped

// Takes a text apart line by line; each ends with a line feed.
class LineReader {
 public:
  LineReader(std::string_view text, std::string_view file_name)
      : rest_(text), file_name_(file_name) {}

  // Errors: INVALID_ARGUMENT at the end of the text.
  absl::StatusOr<std::string_view> Line() {
    ++number_;
    const size_t end = rest_.find('\n');
    if (end == std::string_view::npos) return Bad("the file ends here");
    const std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return line;
  }
  // The value of a line "KEY VALUE".
  absl::StatusOr<std::string_view> Value(std::string_view key) {
    ASSIGN_OR_RETURN(const std::string_view line, Line());
    if (line.substr(0, key.size()) != key || line.size() == key.size() || line[key.size()] != ' ') {
      return Bad(absl::StrCat("'", Shown(line), "', want '", AbslView(key), " ...'"));
    }
    return line.substr(key.size() + 1);
  }
  absl::StatusOr<int64_t> Number(std::string_view text) const {
    int64_t number = 0;
    const bool digits = text.find_first_not_of("0123456789") == std::string_view::npos;
    const bool padded = text.size() > 1 && text[0] == '0';
    if (!digits || padded || !absl::SimpleAtoi(AbslView(text), &number)) {
      return Bad(absl::StrCat("'", Shown(text), "' is no number"));
    }
    return number;
  }
  absl::StatusOr<Sha256Digest> Digest(std::string_view text) const {
    const std::optional<Sha256Digest> digest = Sha256Digest::FromHex(text);
    if (!digest) return Bad(absl::StrCat("'", Shown(text), "' is no SHA-256"));
    return *digest;
  }
  std::string_view rest() const { return rest_; }

  absl::Status Bad(const absl::AlphaNum& why) const {
    return absl::InvalidArgumentError(absl::StrCat(AbslView(file_name_), ":", number_, ": ", why));
  }

 private:
  static std::string Shown(std::string_view text) { return EscapedText(text, kShownBytes); }

  std::string_view rest_;
  std::string_view file_name_;
  int64_t number_ = 0;
};

// "OFFSET BYTES NAME", then a line for each chunk.
absl::StatusOr<TensorDigests> ReadTensor(LineReader& reader, int64_t file_size) {
  ASSIGN_OR_RETURN(const std::string_view value, reader.Value("tensor"));
  const size_t first = value.find(' ');
  const size_t second = first == std::string_view::npos ? first : value.find(' ', first + 1);
  if (second == std::string_view::npos) return reader.Bad("want 'tensor OFFSET BYTES NAME'");
  TensorDigests tensor;
  ASSIGN_OR_RETURN(tensor.offset, reader.Number(value.substr(0, first)));
  ASSIGN_OR_RETURN(tensor.bytes, reader.Number(value.substr(first + 1, second - first - 1)));
  tensor.name = std::string(value.substr(second + 1));
  if (tensor.name.size() > kMaxNameBytes) return reader.Bad("the name is too long");
  const std::optional<int64_t> end = CheckedAdd(tensor.offset, tensor.bytes);
  if (!end || *end > file_size) {
    return reader.Bad(
        absl::StrCat(tensor.bytes, " bytes at ", tensor.offset, " of a file of ", file_size));
  }
  // Grows with the lines that are there, whatever size was claimed.
  for (int64_t at = 0; at < tensor.bytes; at += kDigestChunkBytes) {
    ASSIGN_OR_RETURN(const std::string_view line, reader.Line());
    ASSIGN_OR_RETURN(const Sha256Digest chunk, reader.Digest(line));
    tensor.chunks.push_back(chunk);
  }
  return tensor;
}

}  // namespace

std::string WeightDigestsText(const WeightDigests& digests) {
  std::string text =
      absl::StrCat(AbslView(kFirstLine), "\nsize ", digests.size, "\nheader ", digests.header.Hex(),
                   "\nchunk ", kDigestChunkBytes, "\ntensors ", digests.tensors.size(), "\n");
  for (const TensorDigests& tensor : digests.tensors) {
    absl::StrAppend(&text, "tensor ", tensor.offset, " ", tensor.bytes, " ", tensor.name, "\n");
    for (const Sha256Digest& chunk : tensor.chunks) absl::StrAppend(&text, chunk.Hex(), "\n");
  }
  Sha256 hasher;
  hasher.Update(text);
  absl::StrAppend(&text, "end ", hasher.Finish().Hex(), "\n");
  return text;
}

absl::StatusOr<WeightDigests> ParseWeightDigests(std::string_view text,
                                                 std::string_view file_name) {
  LineReader reader(text, file_name);
  ASSIGN_OR_RETURN(const std::string_view first, reader.Line());
  if (first != kFirstLine) {
    return reader.Bad(absl::StrCat("want '", AbslView(kFirstLine), "'"));
  }
  WeightDigests digests;
  ASSIGN_OR_RETURN(const std::string_view size, reader.Value("size"));
  ASSIGN_OR_RETURN(digests.size, reader.Number(size));
  ASSIGN_OR_RETURN(const std::string_view header, reader.Value("header"));
  ASSIGN_OR_RETURN(digests.header, reader.Digest(header));
  ASSIGN_OR_RETURN(const std::string_view chunk, reader.Value("chunk"));
  ASSIGN_OR_RETURN(const int64_t chunk_bytes, reader.Number(chunk));
  if (chunk_bytes != kDigestChunkBytes) {
    return reader.Bad(absl::StrCat("want 'chunk ", kDigestChunkBytes, "'"));
  }
  ASSIGN_OR_RETURN(const std::string_view tensors, reader.Value("tensors"));
  ASSIGN_OR_RETURN(const int64_t count, reader.Number(tensors));
  for (int64_t i = 0; i < count; ++i) {
    ASSIGN_OR_RETURN(TensorDigests tensor, ReadTensor(reader, digests.size));
    digests.tensors.push_back(std::move(tensor));
  }
  const size_t covered = text.size() - reader.rest().size();
  ASSIGN_OR_RETURN(const std::string_view end, reader.Value("end"));
  ASSIGN_OR_RETURN(const Sha256Digest stated, reader.Digest(end));
  if (!reader.rest().empty()) return reader.Bad("nothing follows 'end'");
  Sha256 hasher;
  hasher.Update(text.substr(0, covered));
  if (hasher.Finish() != stated) {
    return absl::DataLossError(
        absl::StrCat(AbslView(file_name), ": is damaged: its lines do not fit its last one"));
  }
  return digests;
}

}  // namespace weft
