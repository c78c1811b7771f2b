#include "worker/weights/weight_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/status_macros.h"
#include "rpc_backend/protocol/weight_pieces.h"
#include "worker/weights/cache_files.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

constexpr auto kDigestBytes = static_cast<int64_t>(Sha256Digest::kBytes);
constexpr auto kHeaderBytes = static_cast<int64_t>(sizeof(CacheEntryHeader));

int64_t FileBytes(int64_t bytes) { return CacheContentStart(WeightPieceCount(bytes)) + bytes; }

}  // namespace

Sha256Digest ContentDigest(int64_t bytes, absl::Span<const Sha256Digest> digests) {
  Sha256 hasher;
  hasher.Update("weft weight 1");
  hasher.UpdateInt(bytes);
  for (const Sha256Digest& digest : digests) hasher.Update(digest.bytes);
  return hasher.Finish();
}

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
  TidyCacheFolder(folder);
  std::unique_ptr<WeightCache> cache(new WeightCache(std::move(folder), quota_bytes, logger));
  cache->EnforceQuota("");
  return cache;
}

void WeightCache::NoteUnwritten(const absl::Status& status) {
  if (status.ok() || absl::IsUnavailable(status) || unwritten_.exchange(true)) return;
  logger_.Warning(
      StdView(absl::StrCat("--cache ", folder_, ": cannot be written: ", status.message(),
                           "; weights that come over the network may not be kept")));
}

std::string WeightCache::PathOf(const Sha256Digest& name, const char* suffix) const {
  return absl::StrCat(folder_, "/", name.Hex(), suffix);
}

// --- reading ---

absl::StatusOr<Sha256Digest> WeightCache::ContentOf(const Sha256Digest& request) const {
  ASSIGN_OR_RETURN(const std::unique_ptr<MappedFile> alias,
                   MappedFile::Open(PathOf(request, kCacheAliasSuffix)));
  const absl::Span<const uint8_t> raw = alias->bytes();
  const auto content =
      Sha256Digest::FromRaw({reinterpret_cast<const char*>(raw.data()), raw.size()});
  if (!content) return absl::NotFoundError("a request whose name is damaged");
  return *content;
}

absl::StatusOr<std::shared_ptr<const CachedWeight>> WeightCache::Find(const WeightKey& key) {
  Sha256Digest name = ContentDigest(key.bytes, key.digests);
  if (key.digests.empty()) {
    ASSIGN_OR_RETURN(name, ContentOf(key.request));
  }
  const std::string path = PathOf(name, kCacheEntrySuffix);
  auto entry = std::make_shared<CachedWeight>();
  ASSIGN_OR_RETURN(entry->file_, MappedFile::Open(path));
  entry->bytes_ = key.bytes;
  const absl::Span<const uint8_t> all = entry->file_->bytes();
  const int64_t count = WeightPieceCount(key.bytes);
  bool sound = static_cast<int64_t>(all.size()) == FileBytes(key.bytes);
  if (sound) {
    CacheEntryHeader header;
    std::memcpy(&header, all.data(), sizeof(header));
    entry->digests_.resize(static_cast<size_t>(count));
    std::memcpy(entry->digests_.data(), all.data() + kHeaderBytes,
                static_cast<size_t>(count * kDigestBytes));
    entry->content_ = all.subspan(static_cast<size_t>(CacheContentStart(count)));
    CacheEntryHeader wanted;
    wanted.bytes = key.bytes;
    sound = header == wanted && ContentDigest(key.bytes, entry->digests_) == name;
  }
  if (!sound) {
    Remove(*entry);
    return absl::DataLossError(absl::StrCat("cache entry ", path, " is damaged"));
  }
  // Its last use, for the order of removal.
  std::error_code ignored;
  fs::last_write_time(path, fs::file_time_type::clock::now(), ignored);
  return entry;
}

void WeightCache::Remove(const CachedWeight& entry) {
  unlink(entry.file_->path().c_str());
  logger_.Warning(absl::StrCat("a damaged cache entry was removed: ", entry.file_->path()));
}

// --- writing ---

int64_t WeightCache::Writer::count() const { return WeightPieceCount(key_.bytes); }

int64_t WeightCache::Writer::PieceBytes(int64_t index) const {
  return std::min(kWeightPieceBytes, key_.bytes - index * kWeightPieceBytes);
}

absl::Status WeightCache::Writer::Open() {
  struct stat opened = {};
  struct stat named = {};
  // Between opening and locking another process may have finished the file and renamed it.
  do {
    if (descriptor_ >= 0) close(descriptor_);
    descriptor_ = open(path_.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    if (descriptor_ < 0) return CacheFileError("create", path_);
    if (flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
      close(std::exchange(descriptor_, -1));  // the file is not ours to remove
      return absl::UnavailableError(absl::StrCat(path_, " is being written by somebody else"));
    }
    if (fstat(descriptor_, &opened) != 0) return CacheFileError("look at", path_);
  } while (stat(path_.c_str(), &named) != 0 || named.st_ino != opened.st_ino);
  kept_ = opened.st_size == FileBytes(key_.bytes) && HasHeader();
  if (kept_) return absl::OkStatus();
  if (ftruncate(descriptor_, 0) != 0 || ftruncate(descriptor_, FileBytes(key_.bytes)) != 0) {
    return CacheFileError("resize", path_);
  }
  CacheEntryHeader header;
  header.bytes = key_.bytes;
  return WriteFully(descriptor_, &header, kHeaderBytes, 0, path_);
}

bool WeightCache::Writer::HasHeader() const {
  CacheEntryHeader wanted;
  wanted.bytes = key_.bytes;
  CacheEntryHeader header;
  return ReadFully(descriptor_, &header, kHeaderBytes, 0, path_).ok() && header == wanted;
}

absl::Status WeightCache::Writer::OpenToRead() {
  read_only_ = true;
  descriptor_ = open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0) return CacheFileError("open", path_);
  kept_ = HasHeader();
  return absl::OkStatus();
}

WeightCache::Writer::~Writer() {
  if (descriptor_ < 0) return;
  MutexLock lock(mutex_);
  if (!kept_ && !written_ && !read_only_) unlink(path_.c_str());
  close(descriptor_);
}

absl::StatusOr<std::vector<Sha256Digest>> WeightCache::Writer::Table() const {
  std::vector<Sha256Digest> table(static_cast<size_t>(count()));
  RETURN_IF_ERROR(
      ReadFully(descriptor_, table.data(), count() * kDigestBytes, kHeaderBytes, path_));
  return table;
}

bool WeightCache::Writer::ReadKept(int64_t index, std::vector<uint8_t>& data) const {
  if (!kept_ || index < 0 || index >= count()) return false;
  Sha256Digest digest;
  data.resize(static_cast<size_t>(PieceBytes(index)));
  const bool read = ReadFully(descriptor_, digest.bytes.data(), kDigestBytes,
                              kHeaderBytes + index * kDigestBytes, path_)
                        .ok() &&
                    digest != Sha256Digest() &&
                    (key_.digests.empty() || key_.digests[static_cast<size_t>(index)] == digest) &&
                    ReadFully(descriptor_, data.data(), static_cast<int64_t>(data.size()),
                              CacheContentStart(count()) + index * kWeightPieceBytes, path_)
                        .ok();
  return read && Sha256::Of(data) == digest;
}

absl::Status WeightCache::Writer::Write(int64_t index, absl::Span<const uint8_t> data,
                                        const Sha256Digest& digest) {
  if (index < 0 || index >= count() || static_cast<int64_t>(data.size()) != PieceBytes(index)) {
    return absl::InvalidArgumentError(absl::StrCat(path_, ": piece ", index, " of ", data.size(),
                                                   " bytes of ", count(), " pieces"));
  }
  {
    MutexLock lock(mutex_);
    written_ = true;
  }
  // The digest last: a piece that is cut off is no piece. What a crash of the machine leaves is
  // found when it is read.
  RETURN_IF_ERROR(WriteFully(descriptor_, data.data(), static_cast<int64_t>(data.size()),
                             CacheContentStart(count()) + index * kWeightPieceBytes, path_));
  return WriteFully(descriptor_, digest.bytes.data(), kDigestBytes,
                    kHeaderBytes + index * kDigestBytes, path_);
}

absl::StatusOr<std::unique_ptr<WeightCache::Writer>> WeightCache::Start(const WeightKey& key) {
  if (FileBytes(key.bytes) > quota_bytes_) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "a weight of ", key.bytes, " bytes is beyond the cache's quota of ", quota_bytes_));
  }
  std::unique_ptr<Writer> writer(new Writer(key, PathOf(key.request, kCachePartSuffix)));
  RETURN_IF_ERROR(writer->Open());
  return writer;
}

absl::StatusOr<std::unique_ptr<const WeightCache::Writer>> WeightCache::Unfinished(
    const WeightKey& key) const {
  std::unique_ptr<Writer> part(new Writer(key, PathOf(key.request, kCachePartSuffix)));
  RETURN_IF_ERROR(part->OpenToRead());
  return std::unique_ptr<const Writer>(std::move(part));
}

absl::Status WeightCache::Commit(const std::shared_ptr<Writer>& writer) {
  ASSIGN_OR_RETURN(const std::vector<Sha256Digest> table, writer->Table());
  if (std::find(table.begin(), table.end(), Sha256Digest()) != table.end()) {
    return absl::FailedPreconditionError(absl::StrCat(writer->path_, ": a piece of it is missing"));
  }
  const Sha256Digest content = ContentDigest(writer->key_.bytes, table);
  const std::string path = PathOf(content, kCacheEntrySuffix);
  // First: an entry that no request leads to, left by a process that ended here, would be sent and
  // written again. A request that leads to no entry yet still has the part under its own name.
  RETURN_IF_ERROR(WriteAlias(writer->key_.request, content));
  if (rename(writer->path_.c_str(), path.c_str()) != 0) {
    return CacheFileError("rename", writer->path_);
  }
  close(std::exchange(writer->descriptor_, -1));
  EnforceQuota(path);
  return absl::OkStatus();
}

absl::Status WeightCache::WriteAlias(const Sha256Digest& request, const Sha256Digest& content) {
  int64_t number = 0;
  {
    MutexLock lock(mutex_);
    number = next_temporary_++;
  }
  const std::string path = PathOf(request, kCacheAliasSuffix);
  const std::string temporary =
      absl::StrCat(path, ".", getpid(), ".", number, kCacheTemporarySuffix);
  const int descriptor = open(temporary.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
  if (descriptor < 0) return CacheFileError("create", temporary);
  absl::Status status = WriteFully(descriptor, content.bytes.data(), kDigestBytes, 0, temporary);
  close(descriptor);
  if (status.ok() && rename(temporary.c_str(), path.c_str()) != 0) {
    status = CacheFileError("rename", temporary);
  }
  if (!status.ok()) unlink(temporary.c_str());
  return status;
}

// --- quota ---

int64_t WeightCache::used_bytes() const {
  int64_t bytes = 0;
  for (const CacheFile& file : ListCacheFiles(folder_)) bytes += file.bytes;
  return bytes;
}

void WeightCache::EnforceQuota(const std::string& keep) {
  MutexLock lock(mutex_);
  std::vector<CacheFile> files = ListCacheFiles(folder_);
  std::sort(files.begin(), files.end(),
            [](const CacheFile& a, const CacheFile& b) { return a.used < b.used; });
  int64_t used = 0;
  for (const CacheFile& file : files) used += file.bytes;
  for (const CacheFile& file : files) {
    if (used <= quota_bytes_) return;
    if (file.path == keep) continue;
    if (unlink(file.path.c_str()) == 0) used -= file.bytes;
  }
}

}  // namespace weft
