#include "coordinator/chat/marker_scan.h"

#include <algorithm>

namespace weft {

std::optional<MarkerHit> FindMarker(std::string_view text,
                                    std::span<const std::string_view> markers, size_t start) {
  std::optional<MarkerHit> hit;
  for (size_t i = 0; i < markers.size(); ++i) {
    const size_t found = text.find(markers[i], start);
    if (found == std::string_view::npos) continue;
    if (!hit.has_value() || found < hit->position) hit = MarkerHit{found, i};
  }
  return hit;
}

size_t BytesBeforeMarker(std::string_view text, std::span<const std::string_view> markers) {
  size_t held = 0;
  for (const std::string_view marker : markers) {
    for (size_t size = std::min(marker.size() - 1, text.size()); size > held; --size) {
      if (!text.ends_with(marker.substr(0, size))) continue;
      held = size;
    }
  }
  return text.size() - held;
}

bool MayBe(std::string_view text, std::string_view marker) {
  const size_t common = std::min(text.size(), marker.size());
  return text.substr(0, common) == marker.substr(0, common);
}

size_t WholeCharacters(std::string_view text) {
  // The last byte that starts a character, at most three continuation bytes before the end.
  for (size_t back = 1; back <= std::min<size_t>(4, text.size()); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if ((byte & 0xC0) == 0x80) continue;
    const size_t size = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
    return size > back ? text.size() - back : text.size();
  }
  return text.size();
}

}  // namespace weft
