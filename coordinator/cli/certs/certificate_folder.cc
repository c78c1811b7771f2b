#include "coordinator/cli/certs/certificate_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/escaped_text.h"
#include "common/base/small_file.h"
#include "common/base/status_macros.h"
#include "common/base/system_random.h"
#include "common/tls/openssl_objects.h"
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
constexpr size_t kMaxFileBytes = size_t{1} << 20;

struct AuthorityPaths {
  explicit AuthorityPaths(const std::string& where)
      : folder(where),
        certificate(absl::StrCat(where, "/", kAuthorityFile)),
        key(absl::StrCat(where, "/", kAuthorityKeyFile)) {}

  std::string folder;
  std::string certificate;
  std::string key;
};

absl::Status MakeFolder(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return absl::OkStatus();
  if (mkdir(path.c_str(), kPrivateFolder) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot make the folder ", path));
}

struct NewFile {
  std::string path;
  std::string_view text;
  mode_t mode;
};

std::string Staged(const std::string& path) { return absl::StrCat(path, kNewSuffix); }

// Nobody else can read it for a moment.
absl::Status Stage(const NewFile& file) {
  const std::string temporary = Staged(file.path);
  const std::string_view text = file.text;
  (void)unlink(temporary.c_str());  // of a run that was killed
  const int descriptor =
      open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, file.mode);
  if (descriptor < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", temporary));
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
  return absl::OkStatus();
}

// A device or pipe would be gone for everybody, and a link is somebody's way to another place.
absl::Status CheckReplaceable(const std::string& path) {
  struct stat there = {};
  if (lstat(path.c_str(), &there) != 0 || S_ISREG(there.st_mode)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(path, ": is not a regular file, and is not replaced"));
}

// All of them beside their places first, so that a full disk changes nothing; then each takes its
// place whole, in that order.
absl::Status WriteFiles(const std::vector<NewFile>& files) {
  bool changed = false;
  const absl::Cleanup remover = [&files, &changed] {
    if (changed) return;  // the others may be wanted
    for (const NewFile& file : files) (void)unlink(Staged(file.path).c_str());
  };
  for (const NewFile& file : files) RETURN_IF_ERROR(CheckReplaceable(file.path));
  for (const NewFile& file : files) RETURN_IF_ERROR(Stage(file));
  for (const NewFile& file : files) {
    if (rename(Staged(file.path).c_str(), file.path.c_str()) != 0) {
      return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", file.path));
    }
    changed = true;
  }
  return absl::OkStatus();
}

bool IsThere(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(std::filesystem::symlink_status(path, error));
}

absl::Status WithPath(const std::string& path, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(path, ": ", status.message()));
}

absl::Status CheckDays(int32_t days) {
  if (days >= 1 && days <= kMaxDays) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--days: ", days, ", want 1 to ", kMaxDays));
}

// An authority: errors name the file.
absl::StatusOr<KeyAndCertificate> ReadPair(const std::string& key, const std::string& certificate) {
  KeyAndCertificate read;
  ASSIGN_OR_RETURN(read.certificate, ReadSmallFile(certificate, kMaxFileBytes));
  ASSIGN_OR_RETURN(read.key, ReadSmallFile(key, kMaxFileBytes));
  const auto parsed_certificate = ParseCertificate(read.certificate);
  if (!parsed_certificate.ok()) return WithPath(certificate, parsed_certificate.status());
  const auto parsed_key = ParsePrivateKey(read.key);
  if (!parsed_key.ok()) return WithPath(key, parsed_key.status());
  if (X509_check_private_key(parsed_certificate->get(), parsed_key->get()) == 1) return read;
  (void)TakeOpenSslError();
  return absl::FailedPreconditionError(
      absl::StrCat(key, ": does not belong to the certificate in ", certificate));
}

// The certificate takes its place last, and with it the authority is one. A run that was killed
// right before leaves its own beside the place. Whether it is there now.
bool FinishAuthority(const AuthorityPaths& paths) {
  if (IsThere(paths.certificate)) return true;
  if (!ReadPair(paths.key, Staged(paths.certificate)).ok()) return false;
  return rename(Staged(paths.certificate).c_str(), paths.certificate.c_str()) == 0;
}

// What helps where one of the two files is lost.
absl::Status HalfAuthority(const AuthorityPaths& paths) {
  return absl::FailedPreconditionError(
      absl::StrCat(paths.key, " is there without ", paths.certificate,
                   ": put that back (folders that were made with it have a copy); or, if nothing "
                   "was, delete ",
                   paths.key, " and run 'weft certs init ", paths.folder, "'"));
}

// The authority's, if it is there.
absl::StatusOr<KeyAndCertificate> ReadAuthority(const std::string& folder) {
  const AuthorityPaths paths(folder);
  if (FinishAuthority(paths)) return ReadPair(paths.key, paths.certificate);
  if (IsThere(paths.key)) return HalfAuthority(paths);
  return absl::NotFoundError(absl::StrCat(paths.certificate, " is not there; 'weft certs init ",
                                          folder, "' makes an authority"));
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
  // The key's private half may be damaged.
  if (const absl::Status checked = CheckIssuer(made.certificate, authority.certificate);
      !checked.ok()) {
    return WithPath(AuthorityPaths(options.folder).key, checked);
  }
  IssuedCertificate issued;
  issued.folder = absl::StrCat(options.folder, "/", name);
  ASSIGN_OR_RETURN(issued.facts, ReadCertificateFacts(made.certificate));
  RETURN_IF_ERROR(MakeFolder(issued.folder));
  const std::string place = absl::StrCat(issued.folder, "/");
  RETURN_IF_ERROR(WriteFiles({{place + kAuthorityFile, authority.certificate, kPublicFile},
                              {place + kKeyFile, made.key, kPrivateFile},
                              {place + kCertificateFile, made.certificate, kPublicFile}}));
  return issued;
}

}  // namespace

absl::Status WriteJoinToken(const std::string& path) {
  std::array<uint8_t, kTokenBytes> bytes = {};
  RETURN_IF_ERROR(FillWithSystemRandom(absl::MakeSpan(bytes)));
  const absl::string_view raw(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::string text = absl::StrCat(absl::BytesToHexString(raw), "\n");
  return WriteFiles({{path, text, kPrivateFile}});
}

absl::Status CheckWorkerName(std::string_view name) {
  RETURN_IF_ERROR(CheckHostName(name));
  const bool taken = name == kCoordinatorName || name == kAuthorityFile ||
                     name == kAuthorityKeyFile || name.ends_with(kNewSuffix) ||
                     name.front() == '*' || name.front() == '.';
  const bool is_address = name.find(':') != std::string_view::npos;
  if (!taken && !is_address && name.size() <= 64) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("'", EscapedText(name, 100), "' cannot be a worker's name; use one like gpu1"));
}

absl::StatusOr<IssuedCertificate> InitializeCerts(const CertsOptions& options, int64_t now) {
  RETURN_IF_ERROR(CheckDays(options.days));
  for (const std::string& host : options.hosts) RETURN_IF_ERROR(CheckHostName(host));
  const AuthorityPaths paths(options.folder);
  if (IsThere(paths.certificate) && !IsThere(paths.key)) {
    return absl::AlreadyExistsError(
        absl::StrCat(paths.certificate, " is there without ", paths.key,
                     ": certificates are made where that key is; else take another folder"));
  }
  if (IsThere(paths.certificate)) {
    return absl::AlreadyExistsError(absl::StrCat(
        paths.certificate, " is there: an authority is not replaced. 'weft certs coordinator ",
        options.folder, "' renews the coordinator's certificate; else take another folder"));
  }
  if (FinishAuthority(paths)) return IssueCoordinator(options, now);
  if (IsThere(paths.key)) return HalfAuthority(paths);
  CertificateRequest request;
  request.name = "weft private authority";
  request.not_before = now - kBackdatedSeconds;
  request.not_after = now + std::max(kAuthorityDays, options.days) * kDaySeconds;
  ASSIGN_OR_RETURN(const KeyAndCertificate made, MakeAuthority(request));
  RETURN_IF_ERROR(MakeFolder(options.folder));
  RETURN_IF_ERROR(WriteFiles(
      {{paths.key, made.key, kPrivateFile}, {paths.certificate, made.certificate, kPublicFile}}));
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
