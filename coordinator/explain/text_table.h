// Rows of words in aligned columns.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

class TextTable {
 public:
  // One letter per column: 'l' or 'r' for the side that its words are aligned to. A row may end
  // early.
  explicit TextTable(std::string_view alignment) : alignment_(alignment) {}

  void AddRow(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  bool empty() const { return rows_.empty(); }

  // Lines of `indent` blanks and the columns, two blanks apart, without blanks at the end.
  std::string Text(size_t indent) const;

 private:
  std::string alignment_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace weft
