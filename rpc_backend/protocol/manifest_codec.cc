#include "rpc_backend/protocol/manifest_codec.h"

#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "common/base/checked_math.h"
#include "common/base/status_macros.h"
#include "google/protobuf/arena.h"
#include "proto/weights.pb.h"
#include "rpc_backend/protocol/clean_text.h"
#include "rpc_backend/protocol/embedded_message.h"
#include "rpc_backend/protocol/field_error.h"
#include "rpc_backend/protocol/message_check.h"
#include "rpc_backend/protocol/weight_pieces.h"

namespace weft {
namespace {

class ManifestDecoder {
 public:
  ManifestDecoder(int32_t device_count, const WireLimits& limits)
      : device_count_(device_count), limits_(limits) {}

  // `message` has passed CheckMessage.
  absl::StatusOr<LoadManifest> Decode(const proto::LoadManifest& message) {
    LoadManifest manifest;
    for (const proto::ModelFile& file : message.files()) {
      manifest.files.push_back({file.path(), file.size(),
                                Sha256Digest::FromRaw(file.identity()).value_or(Sha256Digest{}),
                                file.data_offset()});
    }
    for (const proto::WeightEntry& entry : message.weights()) {
      absl::StatusOr<WeightEntry> weight = DecodeWeight(entry, manifest.files);
      if (!weight.ok()) {
        return InPlace(absl::StrCat("weight ", entry.weight(), " '", entry.name(), "'"),
                       weight.status());
      }
      manifest.weights.push_back(*std::move(weight));
    }
    return manifest;
  }

 private:
  absl::StatusOr<WeightEntry> DecodeWeight(const proto::WeightEntry& message,
                                           const std::vector<ModelFileRecord>& files) {
    WeightEntry weight;
    weight.weight = message.weight();
    weight.device = message.device();
    weight.bytes = message.bytes();
    weight.name = message.name();
    RETURN_IF_ERROR(CheckField("device", weight.device, 0, device_count_ - 1));
    if (!seen_.insert(weight.weight).second) {
      return BadField("weight", weight.weight, "is used twice");
    }
    slices_ += message.slices_size();
    if (slices_ > limits_.slices) {
      return BadField("slices", "(list)", absl::StrCat("more than ", limits_.slices, " in all"));
    }
    int64_t total = 0;
    for (int i = 0; i < message.slices_size(); ++i) {
      absl::StatusOr<FileSlice> slice = DecodeSlice(message.slices(i), files);
      if (!slice.ok()) return InPlace(absl::StrCat("slice ", i), slice.status());
      total = SaturatingAdd(total, slice->bytes);
      weight.slices.push_back(*slice);
    }
    if (total > weight.bytes) {
      return BadField("bytes", weight.bytes, absl::StrCat("its slices have ", total));
    }
    auto digests = SplitDigests(message.digests(), WeightPieceCount(total));
    if (!digests) {
      return BadField("digests", static_cast<int64_t>(message.digests().size()),
                      absl::StrCat("bytes, want one for each of ", WeightPieceCount(total),
                                   " pieces, or none"));
    }
    weight.digests = *std::move(digests);
    return weight;
  }

  static absl::StatusOr<FileSlice> DecodeSlice(const proto::FileSlice& message,
                                               const std::vector<ModelFileRecord>& files) {
    const FileSlice slice{message.file(), message.offset(), message.bytes()};
    RETURN_IF_ERROR(CheckField("file", slice.file, 0, static_cast<int64_t>(files.size()) - 1));
    const std::optional<int64_t> end = CheckedAdd(slice.offset, slice.bytes);
    const int64_t size = files[static_cast<size_t>(slice.file)].size;
    if (!end || *end > size) {
      return BadField("offset", slice.offset,
                      absl::StrCat("with ", slice.bytes, " bytes leaves file ", slice.file, " of ",
                                   size, " bytes"));
    }
    return slice;
  }

  const int32_t device_count_;
  const WireLimits& limits_;
  absl::flat_hash_set<int32_t> seen_;
  int64_t slices_ = 0;
};

}  // namespace

int64_t ContentBytes(const WeightEntry& weight) {
  int64_t bytes = 0;
  for (const FileSlice& slice : weight.slices) bytes += slice.bytes;
  return bytes;
}

std::string JoinDigests(absl::Span<const Sha256Digest> digests) {
  std::string joined;
  joined.reserve(digests.size() * Sha256Digest::kBytes);
  for (const Sha256Digest& digest : digests) joined += digest.Raw();
  return joined;
}

std::optional<std::vector<Sha256Digest>> SplitDigests(std::string_view joined, int64_t count) {
  std::vector<Sha256Digest> digests;
  if (joined.empty()) return digests;
  if (static_cast<int64_t>(joined.size() / Sha256Digest::kBytes) != count) return std::nullopt;
  for (; !joined.empty(); joined.remove_prefix(Sha256Digest::kBytes)) {
    if (joined.size() < Sha256Digest::kBytes) return std::nullopt;
    digests.push_back(*Sha256Digest::FromRaw(joined.substr(0, Sha256Digest::kBytes)));
  }
  return digests;
}

std::string EncodeLoadManifest(const LoadManifest& manifest) {
  constexpr WireLimits kLimits;
  google::protobuf::Arena arena;
  auto& message = *google::protobuf::Arena::CreateMessage<proto::LoadManifest>(&arena);
  for (const ModelFileRecord& file : manifest.files) {
    proto::ModelFile& inner = *message.add_files();
    inner.set_path(CleanText(file.path, kLimits.path_bytes));
    inner.set_size(file.size);
    inner.set_identity(file.identity.Raw());
    inner.set_data_offset(file.data_offset);
  }
  for (const WeightEntry& weight : manifest.weights) {
    proto::WeightEntry& inner = *message.add_weights();
    inner.set_weight(weight.weight);
    inner.set_device(weight.device);
    inner.set_bytes(weight.bytes);
    inner.set_name(CleanText(weight.name, kLimits.name_bytes));
    inner.set_digests(JoinDigests(weight.digests));
    for (const FileSlice& slice : weight.slices) {
      proto::FileSlice& piece = *inner.add_slices();
      piece.set_file(slice.file);
      piece.set_offset(slice.offset);
      piece.set_bytes(slice.bytes);
    }
  }
  return message.SerializeAsString();
}

absl::StatusOr<LoadManifest> DecodeLoadManifest(std::string_view bytes, int32_t device_count,
                                                const WireLimits& limits) {
  google::protobuf::Arena arena;
  auto& message = *google::protobuf::Arena::CreateMessage<proto::LoadManifest>(&arena);
  RETURN_IF_ERROR(ParseEmbedded("manifest", bytes, limits, message));
  RETURN_IF_ERROR(CheckMessage(message, limits));
  return ManifestDecoder(device_count, limits).Decode(message);
}

}  // namespace weft
