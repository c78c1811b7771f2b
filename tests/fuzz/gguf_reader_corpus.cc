// Writes the seed corpus of gguf_reader_fuzz: gguf_reader_corpus FOLDER
#include <cstdio>
#include <fstream>
#include <string>

#include "tests/unit/common/gguf/gguf_samples.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: gguf_reader_corpus FOLDER\n");
    return 2;
  }
  for (const auto& [name, bytes] : weft::GgufSamples()) {
    std::ofstream file(std::string(argv[1]) + "/" + name + ".gguf", std::ios::binary);
    if (!file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()))) return 1;
  }
  return 0;
}
