#include "worker/weights/weight_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/mapped_file.h"
#include "common/base/status_macros.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kPieceBytes = int64_t{1} << 20;
constexpr const char* kSuffix = ".weight";
constexpr const char* kTemporarySuffix = ".part";
constexpr std::array<char, 8> kMagic = {'w', 'e', 'f', 't', 'w', 'g', 't', '1'};

// What every entry begins with; `bytes` of content follow.
struct EntryHeader {
  std::array<char, 8> magic = kMagic;
  int64_t bytes = 0;
  Sha256Digest content = {};
  std::array<uint8_t, 16> unused = {};  // content starts at a multiple of 64
};
static_assert(sizeof(EntryHeader) == 64);

absl::Status FileError(const std::string& what, const std::string& path) {
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot ", what, " ", path));
}

absl::Status WriteAll(int descriptor, const void* data, int64_t bytes, int64_t offset,
                      const std::string& path) {
  const auto* from = static_cast<const uint8_t*>(data);
  while (bytes > 0) {
    const ssize_t written = pwrite(descriptor, from, static_cast<size_t>(bytes), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return FileError("write", path);
    from += written;
    offset += written;
    bytes -= written;
  }
  return absl::OkStatus();
}

struct Entry {
  std::string path;
  int64_t bytes = 0;
  fs::file_time_type used;
};

// Entries and unfinished files of a folder; what goes away meanwhile is left out.
std::vector<Entry> ListEntries(const std::string& folder) {
  std::vector<Entry> entries;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string path = at->path().string();
    if (!path.ends_with(kSuffix)) continue;
    std::error_code gone;
    Entry entry{path, static_cast<int64_t>(fs::file_size(at->path(), gone)), {}};
    if (!gone) entry.used = fs::last_write_time(at->path(), gone);
    if (!gone) entries.push_back(std::move(entry));
  }
  return entries;
}

// Files that a process which died left behind.
void RemoveStale(const std::string& folder) {
  std::error_code error;
  const auto limit = fs::file_time_type::clock::now() - std::chrono::hours(24);
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code gone;
    if (!at->path().string().ends_with(kTemporarySuffix)) continue;
    if (fs::last_write_time(at->path(), gone) < limit && !gone) fs::remove(at->path(), gone);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<WeightCache>> WeightCache::Open(std::string folder,
                                                               int64_t quota_bytes,
                                                               Logger& logger) {
  if (quota_bytes < 1) {
    return absl::InvalidArgumentError(absl::StrCat("--cache-quota: ", quota_bytes, " bytes"));
  }
  std::error_code error;
  fs::create_directories(folder, error);
  if (error || access(folder.c_str(), W_OK) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("--cache: cannot write to folder ", folder,
                     error ? absl::StrCat(": ", error.message()) : std::string()));
  }
  RemoveStale(folder);
  std::unique_ptr<WeightCache> cache(new WeightCache(std::move(folder), quota_bytes, logger));
  cache->EnforceQuota("");
  return cache;
}

WeightCache::Writer::~Writer() {
  if (descriptor_ >= 0) {
    close(descriptor_);
    unlink(path_.c_str());
  }
}

absl::Status WeightCache::Writer::Append(absl::Span<const uint8_t> data) {
  RETURN_IF_ERROR(WriteAll(descriptor_, data.data(), static_cast<int64_t>(data.size()),
                           static_cast<int64_t>(sizeof(EntryHeader)) + bytes_, path_));
  bytes_ += static_cast<int64_t>(data.size());
  return absl::OkStatus();
}

std::string WeightCache::PathOf(const Sha256Digest& key) const {
  return absl::StrCat(folder_, "/", key.Hex(), kSuffix);
}

absl::StatusOr<std::unique_ptr<WeightCache::Writer>> WeightCache::Start(const Sha256Digest& key,
                                                                        int64_t bytes) {
  if (bytes > quota_bytes_ - static_cast<int64_t>(sizeof(EntryHeader))) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "a weight of ", bytes, " bytes is beyond the cache's quota of ", quota_bytes_));
  }
  int64_t number = 0;
  {
    MutexLock lock(mutex_);
    number = next_temporary_++;
  }
  const std::string path = absl::StrCat(PathOf(key), ".", getpid(), ".", number, kTemporarySuffix);
  const int descriptor = open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
  if (descriptor < 0) return FileError("create", path);
  return std::unique_ptr<Writer>(new Writer(path, descriptor));
}

absl::Status WeightCache::Commit(const Sha256Digest& key, const Sha256Digest& content,
                                 std::unique_ptr<Writer> writer) {
  EntryHeader header;
  header.bytes = writer->bytes_;
  header.content = content;
  RETURN_IF_ERROR(WriteAll(writer->descriptor_, &header, sizeof(header), 0, writer->path_));
  // Before the rename, so that a crash leaves no entry without its content.
  if (fdatasync(writer->descriptor_) != 0) return FileError("write", writer->path_);
  close(std::exchange(writer->descriptor_, -1));
  const std::string path = PathOf(key);
  if (rename(writer->path_.c_str(), path.c_str()) != 0) {
    const absl::Status status = FileError("rename", writer->path_);
    unlink(writer->path_.c_str());
    return status;
  }
  EnforceQuota(path);
  return absl::OkStatus();
}

absl::Status WeightCache::Read(const Sha256Digest& key, int64_t bytes, Sink sink) {
  const std::string path = PathOf(key);
  absl::StatusOr<std::unique_ptr<MappedFile>> file = MappedFile::Open(path);
  RETURN_IF_ERROR(file.status());
  const absl::Span<const uint8_t> all = (*file)->bytes();
  EntryHeader header;
  bool sound = all.size() == sizeof(header) + static_cast<size_t>(bytes);
  if (sound) {
    std::memcpy(&header, all.data(), sizeof(header));
    sound = header.magic == kMagic && header.bytes == bytes;
  }
  if (sound) {
    Sha256 digest;
    for (int64_t at = 0; at < bytes; at += kPieceBytes) {
      const auto piece = all.subspan(sizeof(header) + static_cast<size_t>(at),
                                     static_cast<size_t>(std::min(kPieceBytes, bytes - at)));
      digest.Update(piece);
      RETURN_IF_ERROR(sink(at, piece));
    }
    sound = digest.Finish() == header.content;
  }
  if (!sound) {
    unlink(path.c_str());
    logger_.Warning(absl::StrCat("a damaged cache entry was removed: ", path));
    return absl::DataLossError(absl::StrCat("cache entry ", path, " is damaged"));
  }
  // Its last use, for the order of removal.
  std::error_code ignored;
  fs::last_write_time(path, fs::file_time_type::clock::now(), ignored);
  return absl::OkStatus();
}

int64_t WeightCache::used_bytes() const {
  int64_t bytes = 0;
  for (const Entry& entry : ListEntries(folder_)) bytes += entry.bytes;
  return bytes;
}

void WeightCache::EnforceQuota(const std::string& keep) {
  MutexLock lock(mutex_);
  std::vector<Entry> entries = ListEntries(folder_);
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.used < b.used; });
  int64_t used = 0;
  for (const Entry& entry : entries) used += entry.bytes;
  for (const Entry& entry : entries) {
    if (used <= quota_bytes_) return;
    if (entry.path == keep) continue;
    if (unlink(entry.path.c_str()) == 0) used -= entry.bytes;
  }
}

}  // namespace weft
