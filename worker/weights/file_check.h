// Compares what is used of visible files with known digests, in the background: weights are used
// from the first moment, and what is wrong shows in the next step (decision 28).
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/digest/sha256.h"
#include "worker/weights/model_files.h"

namespace weft {

// Consecutive bytes of a file, with a digest for each MiB.
struct FileCheckItem {
  std::shared_ptr<const ModelFiles::File> file;
  int64_t offset = 0;
  int64_t bytes = 0;
  std::vector<Sha256Digest> digests;
  std::string name;  // of the weight
};

// Thread-safe.
class FileCheck {
 public:
  // Both outlive it.
  FileCheck(ModelFiles& files, Logger* logger) : files_(files), logger_(logger) {}
  // Ends the work.
  ~FileCheck();

  // More to check, after what was there before.
  void Add(std::vector<FileCheckItem> items);
  // DATA_LOSS naming file, weight and bytes once something was found to be wrong.
  absl::Status status() const;
  // Waits until nothing is left to do.
  void Await();

 private:
  void Run();
  absl::Status CheckItem(const FileCheckItem& item) const;
  bool over() const;

  ModelFiles& files_;
  Logger* const logger_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<FileCheckItem> items_ ABSL_GUARDED_BY(mutex_);
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  bool busy_ ABSL_GUARDED_BY(mutex_) = false;
  bool over_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // started with the first item
};

}  // namespace weft
