#include "coordinator/explain/text_table.h"

#include <algorithm>

namespace weft {
namespace {

// Columns that a terminal shows for UTF-8 text of one-column characters.
size_t Columns(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

}  // namespace

std::string TextTable::Text(size_t indent) const {
  std::vector<size_t> widths(alignment_.size());
  for (const std::vector<std::string>& row : rows_) {
    // The last word of a row pushes nothing aside.
    for (size_t c = 0; c < row.size() && c < widths.size(); ++c) {
      const bool last = c + 1 == row.size() && alignment_[c] == 'l';
      if (!last) widths[c] = std::max(widths[c], Columns(row[c]));
    }
  }
  std::string text;
  for (const std::vector<std::string>& row : rows_) {
    std::string line(indent, ' ');
    for (size_t c = 0; c < row.size() && c < widths.size(); ++c) {
      if (c > 0) line += "  ";
      const size_t columns = Columns(row[c]);
      const std::string blanks(widths[c] > columns ? widths[c] - columns : 0, ' ');
      line += alignment_[c] == 'r' ? blanks + row[c] : row[c] + blanks;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace weft
