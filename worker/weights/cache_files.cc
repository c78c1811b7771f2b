#include "worker/weights/cache_files.h"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <fstream>
#include <optional>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "common/digest/sha256.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

// Calls `use` with each path; what cannot be read ends the list.
template <typename Use>
void ForEachFile(const std::string& folder, const Use& use) {
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    use(at->path());
  }
}

}  // namespace

int64_t CacheContentStart(int64_t pieces) {
  const int64_t table = pieces * static_cast<int64_t>(Sha256Digest::kBytes);
  return static_cast<int64_t>(sizeof(CacheEntryHeader)) + (table + 63) / 64 * 64;
}

absl::Status CacheFileError(const std::string& what, const std::string& path) {
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot ", what, " ", path));
}

absl::Status WriteFully(int descriptor, const void* data, int64_t bytes, int64_t offset,
                        const std::string& path) {
  const auto* from = static_cast<const uint8_t*>(data);
  while (bytes > 0) {
    const ssize_t written = pwrite(descriptor, from, static_cast<size_t>(bytes), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return CacheFileError("write", path);
    from += written;
    offset += written;
    bytes -= written;
  }
  return absl::OkStatus();
}

absl::Status ReadFully(int descriptor, void* data, int64_t bytes, int64_t offset,
                       const std::string& path) {
  auto* to = static_cast<uint8_t*>(data);
  while (bytes > 0) {
    const ssize_t read = pread(descriptor, to, static_cast<size_t>(bytes), offset);
    if (read < 0 && errno == EINTR) continue;
    if (read < 0) return CacheFileError("read", path);
    if (read == 0) return absl::DataLossError(absl::StrCat(path, " ends too early"));
    to += read;
    offset += read;
    bytes -= read;
  }
  return absl::OkStatus();
}

std::vector<CacheFile> ListCacheFiles(const std::string& folder) {
  std::vector<CacheFile> files;
  ForEachFile(folder, [&files](const fs::path& at) {
    const std::string path = at.string();
    if (!path.ends_with(kCacheEntrySuffix) && !path.ends_with(kCachePartSuffix)) return;
    std::error_code gone;
    CacheFile file{path, static_cast<int64_t>(fs::file_size(at, gone)), {}};
    if (!gone) file.used = fs::last_write_time(at, gone);
    if (!gone) files.push_back(std::move(file));
  });
  return files;
}

void TidyCacheFolder(const std::string& folder) {
  const auto old = fs::file_time_type::clock::now() - std::chrono::hours(24);
  ForEachFile(folder, [&](const fs::path& at) {
    const std::string path = at.string();
    std::error_code gone;
    if (path.ends_with(kCacheAliasSuffix)) {
      std::string raw(Sha256Digest::kBytes, '\0');
      std::ifstream(path, std::ios::binary)
          .read(raw.data(), static_cast<std::streamsize>(raw.size()));
      const std::string entry =
          absl::StrCat(folder, "/", Sha256Digest::FromRaw(raw)->Hex(), kCacheEntrySuffix);
      if (!fs::exists(entry, gone)) fs::remove(at, gone);
    } else if (path.ends_with(kCachePartSuffix) || path.ends_with(kCacheTemporarySuffix)) {
      if (fs::last_write_time(at, gone) < old && !gone) fs::remove(at, gone);
    }
  });
}

}  // namespace weft
