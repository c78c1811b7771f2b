#include "coordinator/explain/explain_page.h"

#include <string_view>
#include <vector>

#include "common/base/check.h"
#include "coordinator/explain/explain_variants.h"
#include "coordinator/explain/page_bytes.h"
#include "coordinator/explain/page_data.h"

namespace weft {
namespace {

// Where the data stands in the page.
constexpr std::string_view kDataMark = "@DATA@";

std::string DataOf(const ExplainReport& report, const Model& model,
                   absl::Span<Device* const> devices, const ExplainOptions& options) {
  const std::vector<ExplainToggle> toggles = MakeExplainToggles(model, devices, options);
  PageData data(report, toggles);
  for (const ExplainOptions& combination : CombineToggles(toggles, options)) {
    const absl::StatusOr<ExplainReport> variant = MakeExplainReport(model, devices, combination);
    if (variant.ok()) {
      data.Add(*variant);
    } else {
      data.AddRefused(std::string(variant.status().message()));
    }
  }
  return data.Text();
}

}  // namespace

std::string ExplainPage(const ExplainReport& report, const Model& model,
                        absl::Span<Device* const> devices, const ExplainOptions& options) {
  const std::string_view page = PageBytes();
  const size_t mark = page.find(kDataMark);
  WEFT_CHECK(mark != std::string_view::npos);
  std::string text(page.substr(0, mark));
  text += DataOf(report, model, devices, options);
  text += page.substr(mark + kDataMark.size());
  return text;
}

}  // namespace weft
