// Looking for markers in text that arrives in pieces.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace weft {

struct MarkerHit {
  size_t position = 0;
  size_t index = 0;  // of the marker
};

// The first place in `text`, from `start` on, where one of `markers` stands.
std::optional<MarkerHit> FindMarker(std::string_view text,
                                    std::span<const std::string_view> markers, size_t start = 0);

// How many bytes of `text` cannot be the start of a marker that is still arriving.
size_t BytesBeforeMarker(std::string_view text, std::span<const std::string_view> markers);

// Whether `text` is a start of `marker`, or the marker a start of it.
bool MayBe(std::string_view text, std::string_view marker);

// Bytes of `text` that are whole characters: all but a truncated one at the end.
size_t WholeCharacters(std::string_view text);

}  // namespace weft
