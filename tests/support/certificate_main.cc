// weft-certificate AUTHORITY FOLDER ROLE FROM UNTIL [HOST...]: a certificate by the authority in a
// folder of `weft certs`, valid from and until so many seconds from now (also such that are past),
// which `weft certs` does not make. ROLE: coordinator or worker.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>

#include "common/base/unix_time.h"
#include "coordinator/cli/certs/certificate_maker.h"
#include "tests/support/number_argument.h"
#include "tests/support/temporary_folder.h"

namespace {

int Make(int argc, char** argv) {
  const std::string authority = argv[1];
  const std::string folder = argv[2];
  const std::string role = argv[3];
  weft::CertificateRequest request;
  request.name = argc > 6 ? argv[6] : "nobody";
  request.role = role == "worker" ? weft::TlsRole::kWorker : weft::TlsRole::kCoordinator;
  request.not_before = weft::UnixSeconds() + weft::NumberArgument<int64_t>(argv[4]);
  request.not_after = weft::UnixSeconds() + weft::NumberArgument<int64_t>(argv[5]);
  for (int i = 6; i < argc; ++i) request.hosts.emplace_back(argv[i]);
  const std::string certificate = weft::FileText(authority + "/ca.crt");
  const auto made = weft::MakeCertificate(
      request, {.key = weft::FileText(authority + "/ca.key"), .certificate = certificate});
  if (!made.ok()) {
    std::cerr << made.status() << "\n";
    return 1;
  }
  std::filesystem::create_directories(folder);
  const auto write = [&](const char* name, const std::string& text) {
    std::ofstream(folder + "/new", std::ios::binary) << text;
    std::filesystem::rename(folder + "/new", folder + "/" + name);
  };
  write("tls.key", made->key);
  write("tls.crt", made->certificate);
  write("ca.crt", certificate);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6) {
    std::cerr << "usage: weft-certificate AUTHORITY FOLDER ROLE FROM UNTIL [HOST...]\n";
    return 2;
  }
  return Make(argc, argv);
}
