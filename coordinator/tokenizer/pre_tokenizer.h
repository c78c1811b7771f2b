// Splits text to words before byte-pair encoding, by the regular expressions that belong to a
// vocabulary.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/tokenizer/pre_tokenizer_table.h"

namespace weft {

class RegularExpression;

class PreTokenizer {
 public:
  // Compiles the expressions of `row`, which must outlive the object (the rows of
  // PreTokenizerTable() always do).
  // Errors: INTERNAL if the regular expression library refuses one.
  static absl::StatusOr<std::unique_ptr<PreTokenizer>> Create(const PreTokenizerRow& row);

  PreTokenizer(const PreTokenizer&) = delete;
  PreTokenizer& operator=(const PreTokenizer&) = delete;
  ~PreTokenizer();

  // The words of `text`, in order; joined they are `text`, into which they point. Text that no
  // expression matches is a word too. A byte that is not part of valid UTF-8 counts as U+FFFD. Can
  // be called from several threads.
  // Errors: RESOURCE_EXHAUSTED if the regular expression library runs out of memory.
  // Source: spec chapter I.5.
  absl::StatusOr<std::vector<std::string_view>> Split(std::string_view text) const;

  // How often an element of an expression is tried while `text` is split: a measure of time that a
  // test can bound. It is higher than what Split() does, because counting switches optimisations
  // off.
  static absl::StatusOr<int64_t> CountStepsForTest(const PreTokenizerRow& row,
                                                   std::string_view text);

 private:
  PreTokenizer();

  std::vector<std::unique_ptr<RegularExpression>> expressions_;
};

}  // namespace weft
