// Reads protobuf's wire format field by field, straight from its bytes: for messages whose bytes
// should not be copied into generated objects, and for looking at counts before parsing. Takes no
// memory.
// Source: protobuf's encoding guide (varints, wire types 0, 1, 2 and 5).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace weft {

enum class WireType : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

struct WireField {
  int32_t number = 0;
  WireType type = WireType::kVarint;
  uint64_t value = 0;      // of a varint or fixed field
  std::string_view bytes;  // of a field of bytes
};

class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : rest_(bytes) {}

  // The next field; nothing at the end, or if what follows is no field (ok() tells).
  std::optional<WireField> Next();
  // A varint, as they stand in packed lists.
  std::optional<uint64_t> NextVarint();

  // False after something that is not in the format: groups, number 0, truncated values.
  bool ok() const { return ok_; }

 private:
  std::optional<WireField> Fail();

  std::string_view rest_;
  bool ok_ = true;
};

// Values of a packed list of varints that is well-formed; counts nothing else.
int64_t PackedVarintCount(std::string_view bytes);

}  // namespace weft
