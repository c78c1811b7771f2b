#include "common/transport/message.h"

#include "absl/strings/str_cat.h"

namespace weft {
namespace {

std::string Number(const char* name, int64_t value) {
  return value < 0 ? absl::StrCat("any ", name) : absl::StrCat(name, " ", value);
}

}  // namespace

std::string MessageHeaderText(const MessageHeader& header) {
  return absl::StrCat("kind ", header.kind, ", step ", header.step, ", id ", header.id);
}

std::string MessageFilterText(const MessageFilter& filter) {
  return absl::StrCat("kinds 0x", absl::Hex(filter.kinds), ", ", Number("peer", filter.peer), ", ",
                      Number("step", filter.step), ", ", Number("id", filter.id));
}

}  // namespace weft
