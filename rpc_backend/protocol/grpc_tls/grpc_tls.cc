#include "rpc_backend/protocol/grpc_tls/grpc_tls.h"

#include <grpcpp/security/auth_metadata_processor.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <chrono>
#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "common/base/thread.h"
#include "common/base/unix_time.h"
#include "rpc_backend/protocol/grpc_tls/call_policy.h"
#include "rpc_backend/protocol/grpc_tls/grpc_process.h"

namespace weft {
namespace {

constexpr unsigned int kRefreshSeconds = 1;
constexpr std::chrono::seconds kLook{1};
// The names of gRPC's properties of a connection.
constexpr char kUriProperty[] = "peer_uri";
constexpr char kNameProperty[] = "x509_common_name";
constexpr char kPathKey[] = ":path";

std::string TextOf(const grpc::string_ref& text) { return {text.data(), text.size()}; }

std::vector<std::string> TextsOf(const std::vector<grpc::string_ref>& texts) {
  std::vector<std::string> made;
  made.reserve(texts.size());
  for (const grpc::string_ref& text : texts) made.push_back(TextOf(text));
  return made;
}

// Beside OpenSSL's check of the chain. It keeps the files, as CallGuard does: gRPC's credentials
// own both, and let them go after what reads those files.
class PeerVerifier final : public grpc::experimental::ExternalCertificateVerifier {
 public:
  PeerVerifier(TlsRole role, std::shared_ptr<const KeyFiles> files)
      : role_(role), files_(std::move(files)) {}
  ~PeerVerifier() override = default;
  bool Verify(grpc::experimental::TlsCustomVerificationCheckRequest* request,
              std::function<void(grpc::Status)>, grpc::Status* status) override {
    const absl::Status checked =
        CheckPeerCertificate(TextOf(request->peer_cert()), role_, TextOf(request->target_name()));
    *status = checked.ok()
                  ? grpc::Status::OK
                  : grpc::Status(grpc::StatusCode::UNAUTHENTICATED, std::string(checked.message()));
    return true;
  }
  void Cancel(grpc::experimental::TlsCustomVerificationCheckRequest*) override {}

 private:
  const TlsRole role_;
  const std::shared_ptr<const KeyFiles> files_;
};

class CallGuard final : public grpc::AuthMetadataProcessor {
 public:
  CallGuard(std::shared_ptr<const KeyFiles> files, std::function<void(const std::string&)> refused)
      : files_(std::move(files)), refused_(std::move(refused)) {}

  bool IsBlocking() const override { return false; }
  grpc::Status Process(const InputMetadata& metadata, grpc::AuthContext* context, OutputMetadata*,
                       OutputMetadata*) override {
    const auto path = metadata.find(kPathKey);
    const std::vector<grpc::string_ref> names = context->FindPropertyValues(kNameProperty);
    const absl::Status checked =
        CheckCall(path == metadata.end() ? "" : TextOf(path->second),
                  RoleOfUris(TextsOf(context->FindPropertyValues(kUriProperty))),
                  names.empty() ? "" : TextOf(names.front()));
    if (checked.ok()) return grpc::Status::OK;
    const std::string why(checked.message());
    if (refused_) refused_(why);
    return {grpc::StatusCode::PERMISSION_DENIED, why};
  }

 private:
  const std::shared_ptr<const KeyFiles> files_;
  const std::function<void(const std::string&)> refused_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<GrpcTls>> GrpcTls::Open(const std::string& folder, TlsRole role,
                                                       Logger* logger) {
  RETURN_IF_ERROR(CheckGrpcProcess());
  ASSIGN_OR_RETURN(TlsFolder loaded, LoadTlsFolder(folder, role, UnixSeconds()));
  ASSIGN_OR_RETURN(std::shared_ptr<KeyFiles> files, KeyFiles::Create(loaded));
  std::unique_ptr<GrpcTls> tls(new GrpcTls(std::move(loaded), std::move(files), logger));
  GrpcTls* const self = tls.get();
  ASSIGN_OR_RETURN(tls->thread_, StartThread([self] { self->Follow(); }));
  return tls;
}

GrpcTls::GrpcTls(TlsFolder folder, std::shared_ptr<KeyFiles> files, Logger* logger)
    : folder_(std::move(folder)),
      files_(std::move(files)),
      provider_(std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
          files_->identity_path(), files_->identity_path(), files_->authorities_path(),
          kRefreshSeconds)),
      current_(folder_) {
  if (logger != nullptr) watch_ = std::make_unique<CertificateWatch>(folder_, clock_, *logger);
}

GrpcTls::~GrpcTls() {
  {
    MutexLock lock(mutex_);
    stop_ = true;
  }
  changed_.NotifyAll();
  if (thread_.joinable()) thread_.join();
}

void GrpcTls::Follow() {
  MutexLock lock(mutex_);
  while (!stop_) {
    if (changed_.WaitUntil(mutex_, clock_.Now() + kLook)) continue;
    // What is unusable now may be half written, or a pair of which one half is still to come; the
    // watch says so if it stays.
    TlsFolder read = current_;
    const absl::StatusOr<bool> news = RefreshTlsFolder(read, UnixSeconds());
    if (news.ok() && *news && files_->Replace(read).ok()) current_ = std::move(read);
    if (watch_ != nullptr) watch_->Look();
  }
}

std::shared_ptr<grpc::ChannelCredentials> GrpcTls::ForPeers([[maybe_unused]] TlsRole role) const {
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(provider_);
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
#ifndef __clang_analyzer__  // which does not see that gRPC's object keeps what its header makes
  options.set_certificate_verifier(
      grpc::experimental::ExternalCertificateVerifier::Create<PeerVerifier>(role, files_));
#endif
  options.set_check_call_host(false);  // the verifier did, for the connection
  return grpc::experimental::TlsCredentials(options);
}

std::shared_ptr<grpc::ServerCredentials> GrpcTls::ForServer(
    std::function<void(const std::string& why)> refused) const {
  grpc::experimental::TlsServerCredentialsOptions options(provider_);
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  std::shared_ptr<grpc::ServerCredentials> credentials =
      grpc::experimental::TlsServerCredentials(options);
  credentials->SetAuthMetadataProcessor(std::make_shared<CallGuard>(files_, std::move(refused)));
  return credentials;
}

}  // namespace weft
