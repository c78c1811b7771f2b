#include "tests/support/golden_model.h"

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "absl/strings/str_cat.h"

namespace weft {
namespace {

std::vector<float> ReadFloats(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot open " + path);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::vector<float> values(bytes.size() / sizeof(float));
  std::copy(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(values.size() * 4),
            reinterpret_cast<char*>(values.data()));
  return values;
}

}  // namespace

GoldenModel ReadGoldenModel(const std::string& folder) {
  std::ifstream file(folder + "/cases.json");
  if (!file) throw std::runtime_error("cannot open " + folder + "/cases.json");
  const nlohmann::json json = nlohmann::json::parse(file);
  GoldenModel model;
  model.name = json.at("name");
  model.model_path = folder + "/model.gguf";
  model.n_vocab = json.at("n_vocab");
  model.context = json.at("n_ctx");
  model.tol_nmse = json.at("tol_nmse");
  model.tol_exact = json.at("tol_exact");
  model.greedy_margin = json.at("greedy_margin");
  model.nmse_fa_vs_nofa = json.at("nmse_fa_vs_nofa");
  for (const nlohmann::json& entry : json.at("cases")) {
    GoldenCase c;
    c.name = entry.at("name");
    c.tokens = entry.at("tokens").get<std::vector<int32_t>>();
    c.logits = ReadFloats(folder + "/" + entry.at("logits").get<std::string>());
    c.exact = ReadFloats(folder + "/" + entry.at("exact").get<std::string>());
    c.greedy = entry.at("greedy").get<std::vector<int32_t>>();
    c.margins = entry.at("margins").get<std::vector<double>>();
    model.cases.push_back(std::move(c));
  }
  return model;
}

double NormalizedError(absl::Span<const float> x, absl::Span<const float> reference) {
  if (x.size() != reference.size()) return std::numeric_limits<double>::infinity();
  double error = 0;
  double norm = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    if (!std::isfinite(x[i])) return std::numeric_limits<double>::infinity();
    const double difference = double{x[i]} - reference[i];
    error += difference * difference;
    norm += double{reference[i]} * reference[i];
  }
  return norm > 0 ? error / norm : error;
}

std::string CompareGreedy(absl::Span<const int32_t> tokens, absl::Span<const int32_t> reference,
                          absl::Span<const double> margins, double least_margin) {
  for (size_t i = 0; i < reference.size(); ++i) {
    if (i >= tokens.size()) return absl::StrCat("only ", tokens.size(), " tokens");
    if (tokens[i] == reference[i]) continue;
    if (margins[i] <= least_margin) return "";
    return absl::StrCat("step ", i, " gives ", tokens[i], ", want ", reference[i], " (margin ",
                        margins[i], ")");
  }
  return "";
}

std::string TestDataFolder() {
  const char* folder = std::getenv("WEFT_TEST_DATA");
  return folder != nullptr ? folder : "tests/data";
}

std::string GoldenFolder() {
  const char* folder = std::getenv("WEFT_GOLDEN_DIR");
  return folder != nullptr ? folder : "";
}

}  // namespace weft
