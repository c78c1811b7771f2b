#include "rpc_backend/protocol/grpc_tls/key_files.h"

#include <utility>

#include "common/base/status_macros.h"

namespace weft {

absl::StatusOr<std::shared_ptr<KeyFiles>> KeyFiles::Create(const TlsFolder& folder) {
  ASSIGN_OR_RETURN(const TlsTexts texts, CheckedTexts(folder));
  ASSIGN_OR_RETURN(std::unique_ptr<MemoryFile> identity,
                   MemoryFile::Create("tls-identity", texts.identity));
  ASSIGN_OR_RETURN(std::unique_ptr<MemoryFile> authorities,
                   MemoryFile::Create("tls-authorities", texts.authorities));
  return std::shared_ptr<KeyFiles>(new KeyFiles(std::move(identity), std::move(authorities)));
}

KeyFiles::KeyFiles(std::unique_ptr<MemoryFile> identity, std::unique_ptr<MemoryFile> authorities)
    : identity_(std::move(identity)), authorities_(std::move(authorities)) {}

absl::Status KeyFiles::Replace(const TlsFolder& folder) {
  ASSIGN_OR_RETURN(const TlsTexts texts, CheckedTexts(folder));
  // Whom to trust comes first: a new certificate may come from a new authority.
  RETURN_IF_ERROR(authorities_->Replace(texts.authorities));
  return identity_->Replace(texts.identity);
}

}  // namespace weft
