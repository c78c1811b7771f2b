#include "coordinator/cli/certs/certificate_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/escaped_text.h"
#include "common/base/status_macros.h"
#include "common/base/system_random.h"
#include "common/tls/tls_folder.h"
#include "coordinator/cli/certs/certificate_maker.h"

namespace weft {
namespace {

// Clocks of machines differ.
constexpr int64_t kBackdatedSeconds = 3600;
constexpr int32_t kMaxDays = 36500;
constexpr char kAuthorityKeyFile[] = "ca.key";
constexpr char kCoordinatorName[] = "coordinator";
constexpr size_t kTokenBytes = 32;
constexpr mode_t kPrivateFile = 0600;
constexpr mode_t kPublicFile = 0644;
constexpr mode_t kPrivateFolder = 0700;

absl::Status MakeFolder(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return absl::OkStatus();
  if (mkdir(path.c_str(), kPrivateFolder) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot make the folder ", path));
}

// There whole or as before; nobody else can read it for a moment.
absl::Status WriteFile(const std::string& path, std::string_view text, mode_t mode) {
  const std::string temporary = absl::StrCat(path, ".new");
  (void)unlink(temporary.c_str());  // of a run that was killed
  const int descriptor = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  if (descriptor < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", temporary));
  absl::Cleanup remover = [&temporary] { (void)unlink(temporary.c_str()); };
  size_t done = 0;
  ssize_t count = 0;
  while (done < text.size() && count >= 0) {
    count = write(descriptor, text.data() + done, text.size() - done);
    if (count > 0) done += static_cast<size_t>(count);
  }
  const bool written = done == text.size() && fsync(descriptor) == 0;
  const int error = errno;
  close(descriptor);
  if (!written) return absl::ErrnoToStatus(error, absl::StrCat("cannot write ", temporary));
  if (rename(temporary.c_str(), path.c_str()) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", path));
  }
  std::move(remover).Cancel();
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  if (stream.bad() || text.empty()) {
    return absl::NotFoundError(absl::StrCat("cannot read ", path));
  }
  return text;
}

absl::Status CheckDays(int32_t days) {
  if (days >= 1 && days <= kMaxDays) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--days: ", days, ", want 1 to ", kMaxDays));
}

// The authority's, if it is there.
absl::StatusOr<KeyAndCertificate> ReadAuthority(const std::string& folder) {
  const std::string certificate = absl::StrCat(folder, "/", kAuthorityFile);
  KeyAndCertificate authority;
  absl::StatusOr<std::string> read = ReadFile(certificate);
  if (!read.ok()) {
    return absl::NotFoundError(absl::StrCat(read.status().message(), "; 'weft certs init ", folder,
                                            "' makes an authority"));
  }
  authority.certificate = *std::move(read);
  ASSIGN_OR_RETURN(authority.key, ReadFile(absl::StrCat(folder, "/", kAuthorityKeyFile)));
  return authority;
}

absl::StatusOr<IssuedCertificate> Issue(const CertsOptions& options, TlsRole role,
                                        const std::string& name, int64_t now) {
  RETURN_IF_ERROR(CheckDays(options.days));
  ASSIGN_OR_RETURN(const KeyAndCertificate authority, ReadAuthority(options.folder));
  ASSIGN_OR_RETURN(const CertificateFacts issuer, ReadCertificateFacts(authority.certificate));
  RETURN_IF_ERROR(CheckCertificateDates(issuer, now));
  CertificateRequest request;
  request.name = name;
  request.role = role;
  request.hosts.push_back(name);
  for (const std::string& host : options.hosts) {
    const bool known =
        std::find(request.hosts.begin(), request.hosts.end(), host) != request.hosts.end();
    if (!known) request.hosts.push_back(host);
  }
  request.not_before = std::max(now - kBackdatedSeconds, issuer.not_before);
  request.not_after = std::min(now + options.days * kDaySeconds, issuer.not_after);
  ASSIGN_OR_RETURN(const KeyAndCertificate made, MakeCertificate(request, authority));
  IssuedCertificate issued;
  issued.folder = absl::StrCat(options.folder, "/", name);
  ASSIGN_OR_RETURN(issued.facts, ReadCertificateFacts(made.certificate));
  RETURN_IF_ERROR(MakeFolder(issued.folder));
  const auto write = [&](const char* file, std::string_view text, mode_t mode) {
    return WriteFile(absl::StrCat(issued.folder, "/", file), text, mode);
  };
  RETURN_IF_ERROR(write(kKeyFile, made.key, kPrivateFile));
  RETURN_IF_ERROR(write(kCertificateFile, made.certificate, kPublicFile));
  RETURN_IF_ERROR(write(kAuthorityFile, authority.certificate, kPublicFile));
  return issued;
}

}  // namespace

absl::Status WriteJoinToken(const std::string& path) {
  std::array<uint8_t, kTokenBytes> bytes = {};
  RETURN_IF_ERROR(FillWithSystemRandom(absl::MakeSpan(bytes)));
  const absl::string_view raw(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return WriteFile(path, absl::StrCat(absl::BytesToHexString(raw), "\n"), kPrivateFile);
}

absl::Status CheckWorkerName(std::string_view name) {
  RETURN_IF_ERROR(CheckHostName(name));
  const bool taken = name == kCoordinatorName || name == kAuthorityFile ||
                     name == kAuthorityKeyFile || name.front() == '*' || name.front() == '.';
  const bool is_address = name.find(':') != std::string_view::npos;
  if (!taken && !is_address && name.size() <= 64) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("'", EscapedText(name, 100), "' cannot be a worker's name; use one like gpu1"));
}

absl::StatusOr<IssuedCertificate> InitializeCerts(const CertsOptions& options, int64_t now) {
  RETURN_IF_ERROR(CheckDays(options.days));
  for (const std::string& host : options.hosts) RETURN_IF_ERROR(CheckHostName(host));
  const std::string certificate = absl::StrCat(options.folder, "/", kAuthorityFile);
  const std::string key = absl::StrCat(options.folder, "/", kAuthorityKeyFile);
  for (const std::string& path : {certificate, key}) {
    std::error_code error;
    if (std::filesystem::exists(std::filesystem::symlink_status(path, error))) {
      return absl::AlreadyExistsError(absl::StrCat(
          path, " is there: an authority is not replaced. 'weft certs coordinator ", options.folder,
          "' renews the coordinator's certificate; else take another folder"));
    }
  }
  CertificateRequest request;
  request.name = "weft private authority";
  request.not_before = now - kBackdatedSeconds;
  request.not_after = now + std::max(kAuthorityDays, options.days) * kDaySeconds;
  ASSIGN_OR_RETURN(const KeyAndCertificate made, MakeAuthority(request));
  RETURN_IF_ERROR(MakeFolder(options.folder));
  RETURN_IF_ERROR(WriteFile(key, made.key, kPrivateFile));
  RETURN_IF_ERROR(WriteFile(certificate, made.certificate, kPublicFile));
  return IssueCoordinator(options, now);
}

absl::StatusOr<IssuedCertificate> IssueCoordinator(const CertsOptions& options, int64_t now) {
  return Issue(options, TlsRole::kCoordinator, kCoordinatorName, now);
}

absl::StatusOr<IssuedCertificate> IssueWorker(const CertsOptions& options, int64_t now) {
  RETURN_IF_ERROR(CheckWorkerName(options.name));
  return Issue(options, TlsRole::kWorker, options.name, now);
}

}  // namespace weft
