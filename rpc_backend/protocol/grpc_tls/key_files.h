// What gRPC may read of a TLS folder: copies that were checked, in files which nobody else changes.
//
// gRPC reads a key and a certificate by path, one after the other and every second. It ends the
// process when one of them is empty, drops a good pair for one that it cannot use, and waits for
// ever on a pipe. So it never sees the folder itself.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/memory_file.h"
#include "common/tls/tls_folder.h"

namespace weft {

// Outlives whatever reads by those paths: afterwards they may be other files of this process. One
// thread replaces.
class KeyFiles {
 public:
  // `folder` was checked. Errors: those of MemoryFile.
  static absl::StatusOr<std::shared_ptr<KeyFiles>> Create(const TlsFolder& folder);

  // Key and certificate stand in one file, so that they change together.
  std::string identity_path() const { return identity_->path(); }
  std::string authorities_path() const { return authorities_->path(); }

  // Errors: those of MemoryFile.
  absl::Status Replace(const TlsFolder& folder);

 private:
  KeyFiles(std::unique_ptr<MemoryFile> identity, std::unique_ptr<MemoryFile> authorities);

  const std::unique_ptr<MemoryFile> identity_;
  const std::unique_ptr<MemoryFile> authorities_;
};

}  // namespace weft
