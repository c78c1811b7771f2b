#include "tests/unit/common/gguf/gguf_samples.h"

namespace weft {

GgufBytes& GgufBytes::Raw(std::string_view bytes) {
  bytes_.append(bytes);
  return *this;
}

GgufBytes& GgufBytes::Text(std::string_view text) { return U64(text.size()).Raw(text); }

GgufBytes& GgufBytes::Header(int64_t tensor_count, int64_t key_count, uint32_t version) {
  return Raw("GGUF").U32(version).Number(tensor_count).Number(key_count);
}

GgufBytes& GgufBytes::U32Key(std::string_view key, uint32_t value) {
  return Text(key).U32(4).U32(value);
}

GgufBytes& GgufBytes::TextKey(std::string_view key, std::string_view value) {
  return Text(key).U32(8).Text(value);
}

GgufBytes& GgufBytes::ArrayKey(std::string_view key, uint32_t element_type, uint64_t count) {
  return Text(key).U32(9).U32(element_type).U64(count);
}

GgufBytes& GgufBytes::Tensor(std::string_view name, const std::vector<int64_t>& extents,
                             uint32_t type, uint64_t offset) {
  Text(name).U32(static_cast<uint32_t>(extents.size()));
  for (const int64_t extent : extents) Number(extent);
  return U32(type).U64(offset);
}

GgufBytes& GgufBytes::AlignTo(size_t alignment) {
  return Zeros((alignment - bytes_.size() % alignment) % alignment);
}

GgufBytes& GgufBytes::Zeros(size_t count) {
  bytes_.append(count, '\0');
  return *this;
}

namespace {

GgufBytes AllValueTypes() {
  GgufBytes file;
  file.Header(0, 14);
  file.Text("a.u8").U32(0).U8(200).Text("a.i8").U32(1).Number<int8_t>(-5);
  file.Text("a.u16").U32(2).Number<uint16_t>(65535).Text("a.i16").U32(3).Number<int16_t>(-300);
  file.U32Key("a.u32", 4000000000u).Text("a.i32").U32(5).Number<int32_t>(-7);
  file.Text("a.f32").U32(6).Number(0.5f).Text("a.bool").U32(7).U8(1).TextKey("a.text", "h\xFFi");
  file.Text("a.u64").U32(10).U64(~uint64_t{0}).Text("a.i64").U32(11).Number<int64_t>(-1);
  file.Text("a.f64").U32(12).Number(0.25);
  file.ArrayKey("b.texts", 8, 3).Text("").Text("x").Text("a long string of more than 16 bytes");
  file.ArrayKey("b.bools", 7, 3).U8(1).U8(0).U8(1);
  return file;
}

GgufBytes Tensors() {
  GgufBytes file;
  file.Header(3, 2).TextKey("general.architecture", "llama").U32Key("general.alignment", 64);
  file.Tensor("output.weight", {4, 3}, 0, 0).Tensor("blk.0.attn_q.weight", {32, 2}, 8, 64);
  file.Tensor("scalar", {}, 1, 192);
  file.AlignTo(64);
  return file.Zeros(48 + 16).Zeros(68 + 60).Zeros(2);
}

}  // namespace

std::vector<std::pair<std::string, std::string>> GgufSamples() {
  GgufBytes empty;
  empty.Header(0, 0, 2);
  GgufBytes split;
  split.Header(1, 3).Text("split.no").U32(2).Number<uint16_t>(0);
  split.Text("split.count").U32(2).Number<uint16_t>(2);
  split.Text("split.tensors.count").U32(5).Number<int32_t>(2);
  split.Tensor("a", {8}, 0, 0).AlignTo(32).Zeros(32);
  GgufBytes arrays;
  arrays.Header(0, 3).ArrayKey("tokenizer.ggml.scores", 6, 2).Number(1.0f).Number(-1.0f);
  arrays.ArrayKey("tokenizer.ggml.token_type", 5, 0).ArrayKey("rope", 12, 1).Number(2.0);
  return {{"all_value_types", AllValueTypes().bytes()},
          {"tensors", Tensors().bytes()},
          {"empty_version_2", empty.bytes()},
          {"split", split.bytes()},
          {"arrays", arrays.bytes()}};
}

}  // namespace weft
