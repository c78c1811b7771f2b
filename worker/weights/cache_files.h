// The files of a cache: how an entry looks, and what lies in the folder.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace weft {

inline constexpr const char* kCacheEntrySuffix = ".weight";
inline constexpr const char* kCachePartSuffix = ".part";
inline constexpr const char* kCacheAliasSuffix = ".alias";
inline constexpr const char* kCacheTemporarySuffix = ".tmp";

// What an entry begins with; a digest for each piece follows (zeros: the piece is missing), then,
// from ContentStart on, the content.
struct CacheEntryHeader {
  std::array<char, 8> magic = {'w', 'e', 'f', 't', 'w', 'g', 't', '2'};
  int64_t bytes = 0;
  std::array<uint8_t, 48> unused = {};
  friend bool operator==(const CacheEntryHeader&, const CacheEntryHeader&) = default;
};
static_assert(sizeof(CacheEntryHeader) == 64);

// A multiple of 64.
int64_t CacheContentStart(int64_t pieces);

// errno as a status: "cannot WHAT PATH".
absl::Status CacheFileError(const std::string& what, const std::string& path);
absl::Status WriteFully(int descriptor, const void* data, int64_t bytes, int64_t offset,
                        const std::string& path);
absl::Status ReadFully(int descriptor, void* data, int64_t bytes, int64_t offset,
                       const std::string& path);

struct CacheFile {
  std::string path;
  int64_t bytes = 0;
  std::filesystem::file_time_type used;
};

// Entries, finished or not; what goes away meanwhile is left out.
std::vector<CacheFile> ListCacheFiles(const std::string& folder);
// Removes what processes that died left behind, and names of entries that are gone.
void TidyCacheFolder(const std::string& folder);

}  // namespace weft
