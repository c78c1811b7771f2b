"""Writes small random models that cover what GGUF files of the Llama family may contain.

    model_variants.py FOLDER [NAME...]           writes FOLDER/NAME.gguf (default: every variant)
    model_variants.py --fixtures FOLDER          writes the committed ones with cases.json and logits

Needs numpy and gguf from PyPI. Each variant's random numbers are seeded by its name.
"""

import argparse
import hashlib
import json
import pathlib
import sys
import zlib

import gguf
import numpy as np

TYPE = gguf.GGMLQuantizationType
# Byte offsets of the F16 scales in a block of the types that gguf cannot quantise to, and the factor
# that brings random blocks to a standard deviation near one.
RANDOM_BLOCKS = {
    TYPE.Q2_K: ((80, 82), 0.06), TYPE.Q3_K: ((108,), 0.024), TYPE.Q4_K: ((0, 2), 0.003),
    TYPE.Q5_K: ((0, 2), 0.0015), TYPE.Q6_K: ((208,), 0.0007), TYPE.IQ4_NL: ((0,), 0.014),
    TYPE.IQ4_XS: ((0,), 0.0008),
}


def random_blocks(random, rows, columns, kind):
    """Valid blocks of a type: random bytes, scales of either sign and sensible size."""
    elements, size = gguf.GGML_QUANT_SIZES[kind]
    offsets, scale = RANDOM_BLOCKS[kind]
    blocks = random.integers(0, 256, (rows * (columns // elements), size), dtype=np.uint8)
    for offset in offsets:
        d = scale * random.choice([-1, 1], len(blocks)) * random.uniform(0.5, 1.5, len(blocks))
        blocks[:, offset:offset + 2] = (d / np.sqrt(columns)).astype("<f2").view(np.uint8).reshape(-1, 2)
    return blocks.reshape(rows, -1)


class Variant:
    """One model: the shape, the keys and which tensors it has."""

    def __init__(self, name, arch="llama", layers=2, width=48, heads=4, kv_heads=2, key_length=None,
                 value_length=None, feed_forward=80, vocabulary=101, tied=False, weights="F32",
                 embeddings=None, biases=(), keys=None, rope_freqs=False, long_factors=False,
                 experts=0, used=0, fused_qkv=False, fused_gate_up=False, legacy_experts=False,
                 epsilon=1e-5, context=512, vocabulary_key=True, drop_keys=(), head_gain=2.0):
        self.__dict__.update({k: v for k, v in locals().items() if k != "self"})
        self.heads = heads if isinstance(heads, list) else [heads] * layers
        self.kv_heads = kv_heads if isinstance(kv_heads, list) else [kv_heads] * layers
        self.widths = feed_forward if isinstance(feed_forward, list) else [feed_forward] * layers
        self.per_layer = [isinstance(v, list) for v in (heads, kv_heads, feed_forward)]
        self.key_size = key_length or width // self.heads[0]
        self.value_size = value_length or width // self.heads[0]
        self.random = np.random.default_rng(zlib.crc32(name.encode()))
        self.rotated = (keys or {}).get(".rope.dimension_count", self.key_size)

    def write(self, path):
        self.writer = gguf.GGUFWriter(path, self.arch)
        self._write_keys()
        self._matrix("token_embd", self.vocabulary, self.width, self.embeddings or self.weights,
                     gain=np.sqrt(self.width))
        for layer in range(self.layers):
            self._layer(layer, f"blk.{layer}.")
        self._vector("output_norm.weight", self.width, 1.0)
        if not self.tied:
            self._matrix("output", self.vocabulary, self.width, self.embeddings or self.weights)
        if "output" in self.biases:
            self._vector("output.bias", self.vocabulary, 0.0)
        if self.rope_freqs:
            self._factors("rope_freqs.weight", 1, 8)
        if self.long_factors:
            self._factors("rope_factors_long.weight", 1, 6)
            self._factors("rope_factors_short.weight", 1, 1.3)
        self.writer.write_header_to_file()
        self.writer.write_kv_data_to_file()
        self.writer.write_tensors_to_file()
        self.writer.close()

    def _write_keys(self):
        moe = self.experts > 0
        keys = {
            ".context_length": self.context, ".embedding_length": self.width,
            ".block_count": self.layers,
            ".feed_forward_length": self.widths if self.per_layer[2] else self.widths[0],
            ".attention.head_count": self.heads if self.per_layer[0] else self.heads[0],
            ".attention.head_count_kv": self.kv_heads if self.per_layer[1] else self.kv_heads[0],
            ".attention.layer_norm_rms_epsilon": float(self.epsilon),
        }
        if self.vocabulary_key:
            keys[".vocab_size"] = self.vocabulary
        if self.key_length:
            keys[".attention.key_length"] = self.key_length
        if self.value_length:
            keys[".attention.value_length"] = self.value_length
        if moe:
            keys[".expert_count"], keys[".expert_used_count"] = self.experts, self.used
            if self.arch == "qwen3moe":
                keys[".expert_feed_forward_length"] = self.widths[0]
        keys.update(self.keys or {})
        for key, value in keys.items():
            if key not in self.drop_keys:
                self._key(self.arch + key, value)

    def _key(self, key, value):
        if isinstance(value, bool):
            self.writer.add_bool(key, value)
        elif isinstance(value, int):
            self.writer.add_uint32(key, value)
        elif isinstance(value, float):
            self.writer.add_float32(key, value)
        elif isinstance(value, str):
            self.writer.add_string(key, value)
        else:
            self.writer.add_array(key, value)

    def _vector(self, name, size, mean, spread=0.3):
        values = mean + spread * self.random.standard_normal(size)
        self.writer.add_tensor(name, values.astype(np.float32))

    def _factors(self, name, low, high):
        values = self.random.uniform(low, high, self.rotated // 2)
        self.writer.add_tensor(name, values.astype(np.float32))

    def _values(self, rows, columns, kind, gain):
        """Rows of a weight and the type to store them as."""
        values = self.random.standard_normal((rows, columns)) * (gain / np.sqrt(columns))
        kind = TYPE[kind]
        if kind in RANDOM_BLOCKS:
            return random_blocks(self.random, rows, columns, kind), kind
        return gguf.quants.quantize(values.astype(np.float32), kind), kind

    def _matrix(self, name, rows, columns, kind=None, gain=1.0, bias=None, experts=0):
        data, kind = self._values(rows * max(1, experts), columns, kind or self.weights, gain)
        if experts:
            data = data.reshape(experts, rows, -1)
        self.writer.add_tensor(name + ".weight", data, raw_dtype=kind)
        if bias is not None and bias in self.biases:
            self._vector(name + ".bias", rows, 0.0)

    def _layer(self, layer, block):
        heads, kv_heads, width = self.heads[layer], self.kv_heads[layer], self.width
        queries, keys, values = heads * self.key_size, kv_heads * self.key_size, kv_heads * self.value_size
        self._vector(block + "attn_norm.weight", width, 1.0)
        if self.fused_qkv:
            self._matrix(block + "attn_qkv", queries + keys + values, width, gain=self.head_gain, bias="qkv")
        else:
            self._matrix(block + "attn_q", queries, width, gain=self.head_gain, bias="q")
            self._matrix(block + "attn_k", keys, width, gain=self.head_gain, bias="k")
            self._matrix(block + "attn_v", values, width, bias="v")
        self._matrix(block + "attn_output", width, heads * self.value_size, bias="o")
        if self.arch in ("qwen3", "qwen3moe"):
            self._vector(block + "attn_q_norm.weight", self.key_size, 1.3)
            self._vector(block + "attn_k_norm.weight", self.key_size, 1.3)
        self._vector(block + "ffn_norm.weight", width, 1.0)
        if self.experts:
            self._expert_layer(block, self.widths[layer])
        else:
            self._matrix(block + "ffn_gate", self.widths[layer], width, bias="gate")
            self._matrix(block + "ffn_up", self.widths[layer], width, bias="up")
            self._matrix(block + "ffn_down", width, self.widths[layer], bias="down")

    def _expert_layer(self, block, inner):
        width, experts = self.width, self.experts
        self._matrix(block + "ffn_gate_inp", experts, width, "F32", gain=2.0)
        if self.legacy_experts:
            for expert in range(experts):
                self._matrix(f"{block}ffn_gate.{expert}", inner, width)
                self._matrix(f"{block}ffn_up.{expert}", inner, width)
                self._matrix(f"{block}ffn_down.{expert}", width, inner)
            return
        if self.fused_gate_up:
            self._matrix(block + "ffn_gate_up_exps", 2 * inner, width, experts=experts)
        else:
            self._matrix(block + "ffn_gate_exps", inner, width, experts=experts)
            self._matrix(block + "ffn_up_exps", inner, width, experts=experts)
        self._matrix(block + "ffn_down_exps", width, inner, experts=experts)


def yarn(factor, original, **more):
    keys = {".rope.scaling.type": "yarn", ".rope.scaling.factor": float(factor),
            ".rope.scaling.original_context_length": original}
    keys.update({".rope.scaling." + key: value for key, value in more.items()})
    return keys


def scaled(kind, factor):
    keys = {".rope.scaling.factor": float(factor)}
    if kind:
        keys[".rope.scaling.type"] = kind
    return keys


ALL_BIASES = ("q", "k", "v", "o", "gate", "up", "down", "output")
QWEN_BIASES = ("q", "k", "v")
WIDE = {"width": 64, "heads": 2, "kv_heads": 1}
MIXTRAL = {"experts": 5, "used": 2, "feed_forward": 40}
QWEN3MOE = {"arch": "qwen3moe", "experts": 6, "used": 3, "feed_forward": 24, "key_length": 20,
            "value_length": 20}
BLOCK_TYPES = ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "IQ4_NL", "MXFP4")
SUPER_BLOCK_TYPES = ("Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_XS")


def rope_variants():
    return [
        Variant("llama-rope-linear", keys=scaled("linear", 4)),
        Variant("llama-rope-default-linear", keys=scaled(None, 2.5)),
        Variant("llama-rope-scale-linear", keys={".rope.scale_linear": 8.0}),
        Variant("llama-rope-factor-zero", keys=scaled("linear", 0)),
        Variant("llama-rope-none", keys=scaled("none", 4)),
        Variant("llama-rope-yarn4", **WIDE, keys=yarn(4, 32)),
        Variant("llama-rope-yarn32", **WIDE, keys=yarn(32, 16)),
        Variant("llama-rope-yarn-attn-factor", **WIDE, keys=yarn(4, 32, attn_factor=0.7)),
        Variant("llama-rope-linear-attn-factor", keys={**scaled("linear", 2), ".rope.scaling.attn_factor": 1.3}),
        Variant("llama-rope-yarn-log-multiplier", **WIDE, keys=yarn(16, 40, yarn_log_multiplier=0.5)),
        Variant("llama-rope-yarn-betas", **WIDE,
                keys=yarn(8, 64, yarn_beta_fast=16.0, yarn_beta_slow=2.0)),
        Variant("llama-rope-yarn-ext-factor", **WIDE, keys=yarn(8, 64, yarn_ext_factor=0.5)),
        Variant("llama-rope-yarn-ext-zero", **WIDE, keys=yarn(8, 64, yarn_ext_factor=0.0)),
        Variant("llama-rope-yarn-no-original", **WIDE, context=64,
                keys={".rope.scaling.type": "yarn", ".rope.scaling.factor": 4.0}),
        Variant("llama-rope-yarn-integer-keys", **WIDE,
                keys={**yarn(4, 32), ".rope.freq_base": 500000.0}),
        Variant("qwen2-rope-yarn4", arch="qwen2", **WIDE, biases=QWEN_BIASES,
                keys={**yarn(4, 32), ".rope.freq_base": 1e6}),
        Variant("qwen3-rope-yarn4", arch="qwen3", **WIDE, keys=yarn(4, 32)),
        Variant("llama-rope-freqs", rope_freqs=True, keys={".rope.freq_base": 500000.0}),
        Variant("llama-rope-freqs-linear", rope_freqs=True, keys=scaled("linear", 2)),
        Variant("llama-rope-freqs-yarn", **WIDE, rope_freqs=True, keys=yarn(4, 32)),
        Variant("llama-rope-long", long_factors=True,
                keys={".rope.scaling.type": "longrope", ".rope.scaling.attn_factor": 1.19,
                      ".rope.scaling.original_context_length": 64}),
        Variant("llama-rope-short", long_factors=True,
                keys={".rope.scaling.type": "longrope", ".rope.scaling.attn_factor": 1.19,
                      ".rope.scaling.original_context_length": 512}),
        Variant("llama-rope-huge-base", keys={".rope.freq_base": 1e9}),
        Variant("llama-rope-base-1e15", keys={".rope.freq_base": 1e15}),
        Variant("llama-rope-small-base", keys={".rope.freq_base": 2.0}),
        Variant("llama-rope-partial", keys={".rope.dimension_count": 4}),
        Variant("qwen2-rope-partial", arch="qwen2", biases=QWEN_BIASES, keys={".rope.dimension_count": 6}),
        Variant("qwen3-rope-partial", arch="qwen3", keys={".rope.dimension_count": 4}),
    ]


def shape_variants():
    return [
        Variant("llama-wide-heads", heads=3, kv_heads=1, key_length=22, value_length=22),
        Variant("llama-narrow-heads", heads=3, kv_heads=3, key_length=6, value_length=6),
        Variant("llama-unequal-heads", heads=4, kv_heads=2, key_length=14, value_length=10),
        Variant("llama-long-values", heads=4, kv_heads=2, key_length=10, value_length=26),
        Variant("qwen3-wide-heads", arch="qwen3", heads=5, kv_heads=1, key_length=16, value_length=16),
        Variant("qwen3-unequal-heads", arch="qwen3", heads=4, kv_heads=2, key_length=14, value_length=10),
        Variant("llama-heads-of-two", width=14, heads=7, kv_heads=7, feed_forward=19),
        Variant("llama-heads-of-256", width=32, heads=2, kv_heads=1, key_length=256, value_length=256),
        Variant("llama-one-head", width=10, heads=1, kv_heads=1, feed_forward=3, vocabulary=5),
        Variant("llama-odd-width", width=50, heads=5, kv_heads=5, feed_forward=67, vocabulary=97),
        Variant("llama-odd-width-33", width=33, heads=3, kv_heads=1, key_length=12, value_length=12,
                feed_forward=35, vocabulary=31),
        Variant("qwen2-width-7", arch="qwen2", width=7, heads=1, kv_heads=1, key_length=8, value_length=8,
                feed_forward=9, biases=QWEN_BIASES, vocabulary=13),
        Variant("llama-wide-feed-forward", width=24, heads=2, kv_heads=2, feed_forward=1001, vocabulary=1009),
        Variant("llama-many-layers", layers=11, width=16, heads=2, kv_heads=1, feed_forward=20),
        Variant("llama-one-layer", layers=1),
        Variant("llama-all-heads", heads=6, kv_heads=6),
        Variant("llama-one-kv-head", heads=6, kv_heads=1),
        Variant("llama-no-kv-key", heads=6, kv_heads=6, drop_keys=(".attention.head_count_kv",)),
        Variant("llama-no-vocabulary-key", vocabulary_key=False),
        Variant("llama-heads-per-layer", layers=3, heads=[4, 8, 2], kv_heads=[2, 4, 2], key_length=12,
                value_length=12),
        Variant("llama-kv-heads-per-layer", layers=3, heads=6, kv_heads=[1, 2, 6]),
        Variant("llama-feed-forward-per-layer", layers=3, feed_forward=[32, 80, 17]),
        Variant("qwen3-arrays", arch="qwen3", layers=3, heads=[4, 4, 2], kv_heads=[2, 1, 2],
                feed_forward=[32, 80, 17], key_length=12, value_length=12),
        Variant("llama-attention-scale", keys={".attention.scale": 0.11}),
        Variant("qwen3-attention-scale", arch="qwen3", keys={".attention.scale": 0.11}),
        Variant("llama-attention-scale-zero", keys={".attention.scale": 0.0}),
        Variant("llama-tiny-epsilon", epsilon=1e-12),
        Variant("llama-large-epsilon", epsilon=0.5),
        Variant("llama-sharp-attention", head_gain=8.0),
    ]


def tensor_variants():
    return [
        Variant("llama-biases", biases=ALL_BIASES),
        Variant("llama-output-bias-tied", tied=True, biases=("output",)),
        Variant("llama-q-bias-only", biases=("q",)),
        Variant("llama-feed-forward-biases", biases=("gate", "up", "down")),
        Variant("qwen2-output-bias", arch="qwen2", biases=QWEN_BIASES + ("output",)),
        Variant("qwen2-all-biases", arch="qwen2", biases=ALL_BIASES),
        Variant("qwen2-no-biases", arch="qwen2"),
        Variant("qwen3-biases", arch="qwen3", biases=ALL_BIASES),
        Variant("llama-tied", tied=True),
        Variant("qwen2-tied", arch="qwen2", tied=True, biases=QWEN_BIASES),
        Variant("qwen3-tied", arch="qwen3", tied=True),
        Variant("qwen3moe-tied", **QWEN3MOE, tied=True),
        Variant("llama-fused-qkv", fused_qkv=True),
        Variant("llama-fused-qkv-bias", fused_qkv=True, biases=("qkv", "o")),
        Variant("llama-fused-qkv-unequal", fused_qkv=True, key_length=14, value_length=10),
        Variant("qwen2-fused-qkv", arch="qwen2", fused_qkv=True, biases=("qkv",)),
        Variant("qwen3-fused-qkv", arch="qwen3", fused_qkv=True, heads=5, kv_heads=1, key_length=16,
                value_length=16),
    ]


def expert_variants():
    return [
        Variant("mixtral-used-1", **{**MIXTRAL, "used": 1}),
        Variant("mixtral-used-2", **MIXTRAL),
        Variant("mixtral-used-all", **{**MIXTRAL, "used": 5}),
        Variant("mixtral-one-expert", **{**MIXTRAL, "experts": 1, "used": 1}),
        Variant("mixtral-64-experts", experts=64, used=8, feed_forward=7),
        Variant("mixtral-weights-scale", **MIXTRAL, keys={".expert_weights_scale": 2.5}),
        Variant("mixtral-weights-scale-1", **MIXTRAL, keys={".expert_weights_scale": 1.0}),
        Variant("mixtral-not-normalised-key", **MIXTRAL, keys={".expert_weights_norm": False}),
        Variant("mixtral-softmax-key", **MIXTRAL, keys={".expert_gating_func": 1}),
        Variant("mixtral-fused-gate-up", **MIXTRAL, fused_gate_up=True),
        Variant("mixtral-legacy-experts", **MIXTRAL, legacy_experts=True),
        Variant("mixtral-legacy-q8_0", experts=3, used=2, width=64, feed_forward=32, weights="Q8_0",
                legacy_experts=True),
        Variant("mixtral-biases", **MIXTRAL, biases=("q", "k", "v", "o", "output")),
        Variant("mixtral-f16", **MIXTRAL, weights="F16"),
        Variant("mixtral-yarn", experts=5, used=2, feed_forward=40, **WIDE, keys=yarn(4, 32)),
        Variant("qwen3moe-plain", **QWEN3MOE),
        Variant("qwen3moe-used-all", **{**QWEN3MOE, "used": 6}),
        Variant("qwen3moe-weights-scale", **QWEN3MOE, keys={".expert_weights_scale": 1.7}),
        Variant("qwen3moe-normalised-key", **QWEN3MOE, keys={".expert_weights_norm": True}),
        Variant("qwen3moe-fused", **QWEN3MOE, fused_qkv=True, fused_gate_up=True),
        Variant("qwen3moe-fewest-keys", arch="qwen3moe", experts=6, used=3, feed_forward=24, vocabulary_key=False),
    ]


def type_variants():
    variants = []
    for kind in ("F16", "BF16"):
        variants.append(Variant("llama-" + kind.lower(), width=50, heads=5, kv_heads=5, feed_forward=67,
                                weights=kind))
        variants.append(Variant("qwen3-tied-" + kind.lower(), arch="qwen3", weights=kind, tied=True))
    for kind in BLOCK_TYPES:
        variants.append(Variant("llama-" + kind.lower(), width=96, heads=3, kv_heads=1, feed_forward=160,
                                weights=kind))
    for kind in SUPER_BLOCK_TYPES:
        variants.append(Variant("llama-" + kind.lower(), width=256, heads=4, kv_heads=2, feed_forward=768,
                                vocabulary=67, weights=kind))
    for kind in ("Q4_0", "Q8_0", "MXFP4"):
        variants.append(Variant("mixtral-" + kind.lower(), width=96, heads=3, kv_heads=1, feed_forward=64,
                                experts=5, used=2, weights=kind))
    variants.append(Variant("qwen3moe-q4_k", arch="qwen3moe", width=256, heads=4, kv_heads=2, feed_forward=256,
                            experts=4, used=2, weights="Q4_K", embeddings="Q6_K", layers=1))
    variants.append(Variant("qwen2-tied-q6_k", arch="qwen2", width=256, heads=4, kv_heads=2, feed_forward=256,
                            tied=True, biases=QWEN_BIASES, weights="Q4_0", embeddings="Q6_K", vocabulary=67))
    variants.append(Variant("llama-q5_1-fused-qkv", width=96, heads=3, kv_heads=1, feed_forward=160,
                            weights="Q5_1", fused_qkv=True))
    return variants


def all_variants():
    """Name -> Variant. Made afresh on each call: writing a variant uses up its random numbers."""
    made = rope_variants() + shape_variants() + tensor_variants() + expert_variants() + type_variants()
    variants = {variant.name: variant for variant in made}
    assert len(variants) == len(made), "two variants of one name"
    return variants


def prompt(name, length, vocabulary):
    random = np.random.default_rng(zlib.crc32((name + " prompt").encode()))
    return [int(token) for token in random.integers(0, vocabulary, length)]


def fixtures():
    """Small models to commit, each with several features at once."""
    small = {"width": 24, "feed_forward": 20, "vocabulary": 43}
    yarn_shape = {**small, "width": 32, "heads": 2, "kv_heads": 1, "weights": "F16"}
    experts = {"experts": 4, "used": 2, "feed_forward": 10}
    return [
        Variant("llama-yarn", **yarn_shape, keys=yarn(32, 16, attn_factor=0.9)),
        Variant("llama-longrope", **small, heads=3, kv_heads=3, long_factors=True, vocabulary_key=False,
                keys={".rope.scaling.type": "longrope", ".rope.scaling.attn_factor": 1.19,
                      ".rope.scaling.original_context_length": 64}),
        Variant("llama-biases", **small, heads=2, kv_heads=1, biases=ALL_BIASES, keys=scaled("linear", 4)),
        Variant("llama-per-layer", **{**small, "feed_forward": [20, 7, 33]}, layers=3, heads=[2, 4, 1],
                kv_heads=[1, 2, 1], key_length=8, value_length=8, tied=True),
        Variant("llama-unequal-heads", **small, heads=4, kv_heads=2, key_length=14, value_length=10,
                keys={".rope.dimension_count": 6, ".attention.scale": 0.3}),
        Variant("mixtral-fused", **{**small, **experts}, heads=2, kv_heads=1, fused_gate_up=True,
                fused_qkv=True, weights="BF16",
                keys={".expert_weights_scale": 2.5, ".expert_weights_norm": False}),
        Variant("mixtral-split-experts", **{**small, **experts}, heads=2, kv_heads=1, legacy_experts=True,
                weights="F16"),
        Variant("qwen3-fused-qkv", arch="qwen3", **small, heads=3, kv_heads=1, key_length=12, value_length=12,
                fused_qkv=True, keys=yarn(4, 32)),
        Variant("qwen2-partial-rope", arch="qwen2", **small, heads=2, kv_heads=2, tied=True,
                biases=QWEN_BIASES + ("output",), keys={".rope.dimension_count": 8}),
    ]


def write_fixture(folder, variant):
    """FOLDER/NAME with model.gguf, cases.json and exact logits, as the other golden models have them."""
    from reference_model import ReferenceModel

    name = variant.name
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "model.gguf"
    variant.write(path)
    model = ReferenceModel(path)
    cases = []
    for length in (1, 19):
        tokens = prompt(name, length, variant.vocabulary)
        logits = model.logits(tokens).astype("<f4")
        logits.tofile(folder / f"exact_{length}.f32")
        greedy, margins = model.greedy(tokens, 8)
        cases.append({
            "name": f"p{length}", "tokens": tokens, "shape": list(logits.shape),
            "logits": f"exact_{length}.f32", "exact": f"exact_{length}.f32", "greedy": greedy,
            "margins": [float(f"{margin:.3g}") for margin in margins],
        })
    data = path.read_bytes()
    description = {
        "name": name, "arch": variant.arch, "model": "model.gguf",
        "sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data),
        "weight_types": [variant.weights], "n_vocab": variant.vocabulary, "n_ctx": 512,
        "nmse_fa_vs_nofa": 0.0, "tol_nmse": 1e-6, "tol_exact": 1e-6, "greedy_margin": 0.001,
        "cases": cases,
    }
    (folder / "cases.json").write_text(json.dumps(description, indent=1) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--fixtures", action="store_true")
    arguments = parser.parse_args()
    if arguments.fixtures:
        for variant in fixtures():
            write_fixture(arguments.folder / variant.name, variant)
        return 0
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for name, variant in all_variants().items():
        if not arguments.names or name in arguments.names:
            variant.write(arguments.folder / f"{name}.gguf")
    return 0


if __name__ == "__main__":
    sys.exit(main())
