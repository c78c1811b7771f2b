#include "common/program/program.h"

namespace weft {

SlotKind SlotKindOf(LeafKind kind) {
  switch (kind) {
    case LeafKind::kInput:
      return SlotKind::kInput;
    case LeafKind::kWeight:
      return SlotKind::kWeight;
    case LeafKind::kCache:
      return SlotKind::kCache;
    case LeafKind::kPageTable:
      return SlotKind::kPageTable;
  }
  return SlotKind::kArena;  // no leaf lies there, so checks against it fail
}

}  // namespace weft
