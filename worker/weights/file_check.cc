#include "worker/weights/file_check.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/status_macros.h"
#include "common/base/thread.h"

namespace weft {
namespace {

constexpr int kNiceness = 19;  // computing goes first

}  // namespace

FileCheck::~FileCheck() {
  {
    MutexLock lock(mutex_);
    over_ = true;
    changed_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

void FileCheck::Add(std::vector<FileCheckItem> items) {
  std::erase_if(items, [this](const FileCheckItem& item) {
    return files_.IsChecked(*item.file, item.offset, item.bytes);
  });
  if (items.empty()) return;
  MutexLock lock(mutex_);
  for (FileCheckItem& item : items) items_.push_back(std::move(item));
  if (!thread_.joinable()) {
    absl::StatusOr<std::thread> thread = StartThread([this] { Run(); });
    // Without it nothing is checked, as without digests.
    if (!thread.ok()) {
      items_.clear();
      return;
    }
    thread_ = *std::move(thread);
  }
  changed_.NotifyAll();
}

absl::Status FileCheck::status() const {
  MutexLock lock(mutex_);
  return status_;
}

void FileCheck::Await() {
  MutexLock lock(mutex_);
  while (busy_ || !items_.empty()) changed_.Wait(mutex_);
}

bool FileCheck::over() const {
  MutexLock lock(mutex_);
  return over_;
}

absl::Status FileCheck::CheckItem(const FileCheckItem& item) const {
  const absl::Span<const uint8_t> all = item.file->mapped->bytes().subspan(
      static_cast<size_t>(item.offset), static_cast<size_t>(item.bytes));
  for (size_t i = 0; i < item.digests.size() && !over(); ++i) {
    const size_t at = i * kDigestChunkBytes;
    const absl::Span<const uint8_t> piece = all.subspan(at, kDigestChunkBytes);
    if (Sha256::Of(piece) == item.digests[i]) continue;
    return absl::DataLossError(absl::StrCat(item.file->mapped->path(), ": weight '", item.name,
                                            "' differs from its digests in bytes ",
                                            item.offset + static_cast<int64_t>(at), " to ",
                                            item.offset + static_cast<int64_t>(at + piece.size())));
  }
  return absl::OkStatus();
}

void FileCheck::Run() {
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNiceness);
  mutex_.Lock();
  while (!over_) {
    if (items_.empty()) {
      changed_.Wait(mutex_);
      continue;
    }
    const FileCheckItem item = std::move(items_.front());
    items_.pop_front();
    busy_ = true;
    mutex_.Unlock();
    const absl::Status status = CheckItem(item);
    if (!status.ok() && logger_ != nullptr) logger_->Error(StdView(status.message()));
    mutex_.Lock();
    if (status.ok() && !over_) {
      mutex_.Unlock();
      files_.MarkChecked(*item.file, item.offset, item.bytes);
      mutex_.Lock();
    }
    status_.Update(status);
    busy_ = false;
    changed_.NotifyAll();
  }
  mutex_.Unlock();
}

}  // namespace weft
