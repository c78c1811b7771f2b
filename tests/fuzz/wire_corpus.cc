// Writes the seed corpora of the fuzz targets of messages: wire_corpus FOLDER
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/wire_targets.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: wire_corpus FOLDER\n");
    return 2;
  }
  for (const weft::WireTarget& target : weft::WireTargets()) {
    const std::filesystem::path folder = std::filesystem::path(argv[1]) / target.name;
    std::filesystem::create_directories(folder);
    for (const auto& [name, bytes] : target.seeds()) {
      std::ofstream file(folder / (name + ".bin"), std::ios::binary);
      if (!file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()))) return 1;
    }
  }
  return 0;
}
