// weft certs: the flags, and what is printed.
#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/absl_view.h"
#include "common/base/status_macros.h"
#include "common/base/unix_time.h"
#include "common/tls/tls_folder.h"
#include "coordinator/cli/certs/certificate_folder.h"
#include "coordinator/cli/commands/commands.h"

namespace weft {
namespace {

struct CertsFlags {
  CertsOptions options;
  bool json = false;
};

using IssueFunction = absl::StatusOr<IssuedCertificate> (*)(const CertsOptions& options,
                                                            int64_t now);

std::string CertsText(const IssuedCertificate& issued) {
  const CertificateFacts& facts = issued.facts;
  return absl::StrCat(issued.folder, ": ", kAuthorityFile, ", ", kCertificateFile, ", ", kKeyFile,
                      "\nrole ", AbslView(RoleText(facts.role)), "; names ",
                      absl::StrJoin(facts.hosts, ", "), "; until ", UtcText(facts.not_after), "\n");
}

std::string CertsJson(const IssuedCertificate& issued) {
  const CertificateFacts& facts = issued.facts;
  const nlohmann::ordered_json report = {
      {"folder", issued.folder},      {"name", facts.name},     {"role", RoleText(facts.role)},
      {"hosts", facts.hosts},         {"issuer", facts.issuer}, {"not_before", facts.not_before},
      {"not_after", facts.not_after}, {"sha256", facts.sha256}};
  return report.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

CLI::App* AddCertsSubcommand(CLI::App& certs, const char* name, const char* what,
                             const std::shared_ptr<CertsFlags>& flags, IssueFunction issue,
                             CommandContext& context) {
  CLI::App* command = certs.add_subcommand(name, what);
  command->add_option("--days", flags->options.days, "how long the certificate is valid")
      ->capture_default_str();
  command->add_option("--host", flags->options.hosts,
                      "another DNS name or IP address of that machine; may be given repeatedly");
  command->add_flag("--json", flags->json, "print one JSON object");
  command->callback([flags, issue, &context] {
    context.action = [flags, issue]() -> absl::Status {
      ASSIGN_OR_RETURN(const IssuedCertificate issued, issue(flags->options, UnixSeconds()));
      return Print(flags->json ? CertsJson(issued) : CertsText(issued));
    };
  });
  return command;
}

void AddTokenSubcommand(CLI::App& certs, CommandContext& context) {
  const auto path = std::make_shared<std::string>();
  CLI::App* command =
      certs.add_subcommand("token", "make a token with which workers join (--join-token-file)");
  command->footer("Example: weft certs token certs/join.token");
  command->add_option("FILE", *path, "where to; a token that is there is replaced")->required();
  command->callback([path, &context] {
    context.action = [path]() -> absl::Status {
      RETURN_IF_ERROR(WriteJoinToken(*path));
      return Print(absl::StrCat(*path, ": a new token; every worker that joins needs a copy\n"));
    };
  });
}

}  // namespace

void AddCertsCommand(CLI::App& app, CommandContext& context) {
  auto flags = std::make_shared<CertsFlags>();
  CLI::App* certs =
      app.add_subcommand("certs", "Make a private authority, and certificates for --tls.");
  certs->require_subcommand(1);
  certs->footer(
      "Example: weft certs init certs && weft certs worker gpu1 certs --host 10.0.0.2\n"
      "Then copy certs/gpu1 to that machine: weft-worker --tls gpu1 --listen 10.0.0.2:7000;\n"
      "and here: weft workers --tls certs/coordinator --workers 10.0.0.2");
  CLI::App* init =
      AddCertsSubcommand(*certs, "init", "make an authority in DIR, and DIR/coordinator for weft",
                         flags, InitializeCerts, context);
  init->footer("Example: weft certs init certs");
  init->add_option("DIR", flags->options.folder, "a folder without an authority")->required();
  CLI::App* coordinator =
      AddCertsSubcommand(*certs, "coordinator", "renew the certificate in DIR/coordinator", flags,
                         IssueCoordinator, context);
  coordinator->footer("Example: weft certs coordinator certs --days 90");
  coordinator->add_option("DIR", flags->options.folder, "folder of the authority")->required();
  CLI::App* worker = AddCertsSubcommand(
      *certs, "worker", "make or renew DIR/NAME for a weft-worker", flags, IssueWorker, context);
  worker->footer("Example: weft certs worker gpu1 certs --host 10.0.0.2 --host gpu1.lan");
  worker->add_option("NAME", flags->options.name, "of the machine; weft can reach it by this name")
      ->required();
  worker->add_option("DIR", flags->options.folder, "folder of the authority")->required();
  AddTokenSubcommand(*certs, context);
}

}  // namespace weft
