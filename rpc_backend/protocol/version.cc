#include "rpc_backend/protocol/version.h"

#include <algorithm>
#include <array>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/absl_view.h"
#include "common/graph/op.h"
#include "common/tensor/dtype.h"
#include "rpc_backend/protocol/clean_text.h"

namespace weft {
namespace {

constexpr size_t kShownReleaseBytes = 32;

// The numbers of a release, most significant first; nothing if it has another form.
std::optional<std::vector<int64_t>> ReleaseNumbers(const std::string& release) {
  std::vector<int64_t> numbers;
  for (const absl::string_view part : absl::StrSplit(release, '.')) {
    int64_t number = 0;
    if (!absl::SimpleAtoi(part, &number) || number < 0) return std::nullopt;
    numbers.push_back(number);
  }
  return numbers;
}

std::string ReleaseText(const ProtocolHello& hello) {
  const std::string release = CleanText(hello.release, kShownReleaseBytes);
  return absl::StrCat("weft ", release.empty() ? "?" : release);
}

std::string VersionText(const ProtocolHello& hello) {
  return absl::StrCat(hello.major, ".", hello.minor, " (", ReleaseText(hello), ")");
}

// What to do where the protocol is the same and the operations are not.
std::string Remedy(const ProtocolHello& own, std::string_view own_role, const ProtocolHello& other,
                   std::string_view other_name) {
  const auto own_numbers = ReleaseNumbers(own.release);
  const auto other_numbers = ReleaseNumbers(other.release);
  if (own_numbers && other_numbers && *own_numbers != *other_numbers) {
    return absl::StrCat("upgrade ", *own_numbers < *other_numbers
                                        ? absl::StrCat("the ", AbslView(own_role))
                                        : std::string(other_name));
  }
  return "build both from the same sources";
}

}  // namespace

Sha256Digest OpSetHash() {
  Sha256 hasher;
  const auto name = [&](std::string_view text) {
    hasher.UpdateInt(static_cast<int64_t>(text.size()));
    hasher.Update(text);
  };
  hasher.UpdateInt(kOpCount);
  for (const OpInfo& op : AllOps()) {
    name(op.name);
    for (const int64_t value :
         {int64_t{op.min_sources}, int64_t{op.max_sources}, int64_t{op.attributes},
          int64_t{op.is_view}, int64_t{op.in_place}, int64_t{op.writes_source}}) {
      hasher.UpdateInt(value);
    }
  }
  for (int i = 0; i < kUnaryKindCount; ++i) name(UnaryName(static_cast<UnaryKind>(i)));
  for (int i = 0; i <= static_cast<int>(GluKind::kSwigluOai); ++i) {
    name(GluName(static_cast<GluKind>(i)));
  }
  hasher.UpdateInt(kPageTokens);
  for (const DTypeInfo& dtype : AllDTypes()) {
    name(dtype.name);
    hasher.UpdateInt(dtype.gguf_id);
    hasher.UpdateInt(dtype.block_elements);
    hasher.UpdateInt(dtype.block_bytes);
  }
  return hasher.Finish();
}

ProtocolHello OwnHello() { return {kProtocolMajor, kProtocolMinor, WEFT_VERSION, OpSetHash(), {}}; }

absl::Status CheckHello(const ProtocolHello& own, std::string_view own_role,
                        const ProtocolHello& other, std::string_view other_name) {
  if (own.major != other.major) {
    return absl::FailedPreconditionError(
        absl::StrCat(AbslView(other_name), " speaks protocol ", VersionText(other), ", this ",
                     AbslView(own_role), " ", VersionText(own), ": upgrade ",
                     own.major < other.major ? absl::StrCat("the ", AbslView(own_role))
                                             : std::string(other_name)));
  }
  if (own.op_set == other.op_set) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      AbslView(other_name), " has other operations (set ", other.op_set.Hex().substr(0, 8),
      ", protocol ", VersionText(other), ") than this ", AbslView(own_role), " (set ",
      own.op_set.Hex().substr(0, 8), ", protocol ", VersionText(own),
      "): ", Remedy(own, own_role, other, other_name)));
}

std::vector<std::string> SharedFeatures(const ProtocolHello& own, const ProtocolHello& other) {
  std::vector<std::string> shared;
  for (const std::string& feature : own.features) {
    const auto& theirs = other.features;
    if (std::find(theirs.begin(), theirs.end(), feature) != theirs.end()) {
      shared.push_back(feature);
    }
  }
  return shared;
}

}  // namespace weft
