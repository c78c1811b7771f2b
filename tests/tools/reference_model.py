"""Evaluates a GGUF model of the Llama family in double precision, in the plainest way.

Written from the formulas of the families alone: no cache, no batching, no reordering, whole prompt at
once as matrices of float64. Families: llama (with Mixtral's experts), qwen2, qwen3, qwen3moe.
Needs numpy and gguf from PyPI.

    reference_model.py MODEL --tokens 1,2,3 [--logits OUT.f32] [--greedy N] [-c N]

writes what `weft eval` writes: raw little-endian F32 logits, a row per position; greedy ids on one line.
"""

import argparse
import math
import sys

import gguf
import numpy as np

ADJACENT_PAIRS = {"llama": True, "qwen2": False, "qwen3": False, "qwen3moe": False}


class Metadata:
    """Keys of the file; those beginning with `.` belong to the architecture."""

    def __init__(self, reader):
        self._fields = reader.fields
        self.architecture = self.get("general.architecture")

    def get(self, key, default=None):
        if key.startswith("."):
            key = self.architecture + key
        field = self._fields.get(key)
        return default if field is None else field.contents()

    def per_layer(self, key, layers, default=None):
        value = self.get(key, default)
        return list(value)[:layers] if isinstance(value, (list, np.ndarray)) else [value] * layers


def read_weights(reader):
    """Name -> float64 array, rows first (the reverse of the file's order of dimensions)."""
    weights = {}
    for tensor in reader.tensors:
        shape = [int(extent) for extent in reversed(tensor.shape)]
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        weights[tensor.name] = np.asarray(values, np.float64).reshape(shape)
    return weights


class Rope:
    """Angles and magnitude of the rotation, from the metadata."""

    def __init__(self, meta, head_size, factors, context):
        self.dimensions = int(meta.get(".rope.dimension_count", head_size))
        self.adjacent = ADJACENT_PAIRS[meta.architecture]
        base = float(meta.get(".rope.freq_base", 10000.0))
        kind = meta.get(".rope.scaling.type", "linear")
        factor = meta.get(".rope.scaling.factor")
        if factor is None:
            factor = meta.get(".rope.scale_linear", 0.0)
        factor = float(factor)
        scale = 1.0 if factor == 0 or kind == "none" else 1.0 / factor
        original = int(meta.get(".rope.scaling.original_context_length", meta.get(".context_length")))
        extrapolation = float(meta.get(".rope.scaling.yarn_ext_factor", -1.0))
        if extrapolation < 0:
            extrapolation = 1.0 if kind == "yarn" else 0.0
        fast = float(meta.get(".rope.scaling.yarn_beta_fast", 32.0))
        slow = float(meta.get(".rope.scaling.yarn_beta_slow", 1.0))
        multiplier = float(meta.get(".rope.scaling.yarn_log_multiplier", 0.0)) / 0.1  # stored as a tenth

        pairs = self.dimensions // 2
        frequency = np.array([base ** (-2.0 * i / self.dimensions) for i in range(pairs)])
        if "rope_freqs.weight" in factors:
            frequency = frequency / factors["rope_freqs.weight"][:pairs]
        elif "rope_factors_long.weight" in factors and context > original:
            frequency = frequency / factors["rope_factors_long.weight"][:pairs]
        elif "rope_factors_short.weight" in factors and context <= original:
            frequency = frequency / factors["rope_factors_short.weight"][:pairs]

        self.magnitude = 1.0
        if extrapolation == 0:
            self.frequency = frequency * scale
        else:
            def correction(beta):
                return self.dimensions * math.log(original / (beta * 2 * math.pi)) / (2 * math.log(base))

            def magnitude(s, m):
                return 1.0 if s <= 1 else 0.1 * m * math.log(s) + 1.0

            low = max(0.0, math.floor(correction(fast)))
            high = min(self.dimensions - 1.0, math.ceil(correction(slow)))
            ramp = 1 - np.clip((np.arange(pairs) - low) / max(0.001, high - low), 0, 1)
            mix = ramp * extrapolation
            self.frequency = frequency * scale * (1 - mix) + frequency * mix
            stretch = 1 / scale
            if multiplier != 0:
                self.magnitude = magnitude(stretch, 1.0) / magnitude(stretch, multiplier)
            else:
                self.magnitude = magnitude(stretch, 1.0)
        self.magnitude *= float(meta.get(".rope.scaling.attn_factor", 1.0))

    def apply(self, x):
        """x: [tokens, heads, head size]."""
        angle = np.arange(x.shape[0])[:, None, None] * self.frequency
        cosine, sine = np.cos(angle) * self.magnitude, np.sin(angle) * self.magnitude
        half = self.dimensions // 2
        if self.adjacent:
            first, second = slice(0, self.dimensions, 2), slice(1, self.dimensions, 2)
        else:
            first, second = slice(0, half), slice(half, self.dimensions)
        result = x.copy()
        result[..., first] = x[..., first] * cosine - x[..., second] * sine
        result[..., second] = x[..., first] * sine + x[..., second] * cosine
        return result


def rms_norm(x, weight, epsilon):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + epsilon) * weight


def softmax(x):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def silu(x):
    with np.errstate(over="ignore"):
        return x / (1 + np.exp(-x))


def cached(x, kind):
    """What a cache of this type gives back for rows of heads x."""
    if kind == "f32":
        return x
    if kind == "f16":
        return x.astype(np.float32).astype(np.float16).astype(np.float64)
    blocks = x.astype(np.float32).reshape(-1, 32)
    return gguf.quants.dequantize(
        gguf.quants.quantize(blocks, gguf.GGMLQuantizationType.Q8_0),
        gguf.GGMLQuantizationType.Q8_0).astype(np.float64).reshape(x.shape)


def in_blocks(x):
    """x rounded to 8 bits in blocks of 32 with a scale each, as weft multiplies it with quantised weights."""
    blocks = x.reshape(*x.shape[:-1], -1, 32)
    scale = np.max(np.abs(blocks), axis=-1, keepdims=True) / 127
    codes = np.rint(np.divide(blocks, scale, out=np.zeros_like(blocks), where=scale != 0))
    return (codes * scale).reshape(x.shape)


class ReferenceModel:
    """A model read whole into float64.

    With `rounded`, what meets a quantised weight is rounded first: the difference from the exact
    result is then that of the arithmetic alone.
    """

    def __init__(self, path, context=512, key_type="f32", value_type="f32", rounded=False):
        reader = gguf.GGUFReader(path)
        exact = (gguf.GGMLQuantizationType.F32, gguf.GGMLQuantizationType.F16, gguf.GGMLQuantizationType.BF16)
        self.blocks = {tensor.name for tensor in reader.tensors if rounded and tensor.tensor_type not in exact}
        meta = self.meta = Metadata(reader)
        self.architecture = meta.architecture
        assert self.architecture in ADJACENT_PAIRS, self.architecture
        self.weights = read_weights(reader)
        self.layers = int(meta.get(".block_count"))
        width = int(meta.get(".embedding_length"))
        self.heads = [int(h) for h in meta.per_layer(".attention.head_count", self.layers)]
        kv = meta.per_layer(".attention.head_count_kv", self.layers)
        self.kv_heads = [int(h if k is None else k) for h, k in zip(self.heads, kv)]
        self.key_size = int(meta.get(".attention.key_length", width // self.heads[0]))
        self.value_size = int(meta.get(".attention.value_length", width // self.heads[0]))
        self.epsilon = float(meta.get(".attention.layer_norm_rms_epsilon"))
        scale = float(meta.get(".attention.scale", 0.0))
        self.scale = scale if scale != 0 else 1 / math.sqrt(self.key_size)
        self.used = int(meta.get(".expert_used_count", 0))
        self.expert_scale = float(meta.get(".expert_weights_scale", 0.0))
        self.rope = Rope(meta, self.key_size, self.weights, context)
        self.key_type, self.value_type = key_type, value_type

    def prepared(self, name, x):
        return in_blocks(x) if name + ".weight" in self.blocks else x

    def linear(self, name, x):
        y = self.prepared(name, x) @ self.weights[name + ".weight"].T
        bias = self.weights.get(name + ".bias")
        return y if bias is None else y + bias

    def project(self, block, x):
        """Queries, keys and values, a row per token."""
        if block + "attn_qkv.weight" not in self.weights:
            return [self.linear(block + name, x) for name in ("attn_q", "attn_k", "attn_v")]
        layer = int(block.split(".")[1])
        ends = np.cumsum([self.heads[layer] * self.key_size, self.kv_heads[layer] * self.key_size])
        return np.split(self.linear(block + "attn_qkv", x), ends, axis=-1)

    def attention(self, layer, x):
        block = f"blk.{layer}."
        tokens, heads, kv_heads = x.shape[0], self.heads[layer], self.kv_heads[layer]
        q, k, v = self.project(block, x)
        q = q.reshape(tokens, heads, self.key_size)
        k = k.reshape(tokens, kv_heads, self.key_size)
        v = v.reshape(tokens, kv_heads, self.value_size)
        if block + "attn_q_norm.weight" in self.weights:
            q = rms_norm(q, self.weights[block + "attn_q_norm.weight"], self.epsilon)
            k = rms_norm(k, self.weights[block + "attn_k_norm.weight"], self.epsilon)
        q, k = self.rope.apply(q), self.rope.apply(k)
        k, v = cached(k, self.key_type), cached(v, self.value_type)
        hidden = np.triu(np.full((tokens, tokens), -np.inf), 1)
        out = np.empty((tokens, heads, self.value_size))
        for head in range(heads):
            kv_head = head // (heads // kv_heads)
            score = self.scale * (q[:, head] @ k[:, kv_head].T) + hidden
            out[:, head] = softmax(score) @ v[:, kv_head]
        return self.linear(block + "attn_output", out.reshape(tokens, heads * self.value_size))

    def expert_product(self, block, name, expert, x):
        """x times one expert's matrix: merged, gate and up in one, or a tensor of its own."""
        both = block + "ffn_gate_up_exps"
        if name != "down" and both + ".weight" in self.weights:
            part = np.split(self.weights[both + ".weight"][expert], 2)[0 if name == "gate" else 1]
            return part @ self.prepared(both, x)
        merged, own = f"{block}ffn_{name}_exps", f"{block}ffn_{name}.{expert}"
        if merged + ".weight" in self.weights:
            return self.weights[merged + ".weight"][expert] @ self.prepared(merged, x)
        return self.weights[own + ".weight"] @ self.prepared(own, x)

    def experts(self, block, x):
        probabilities = softmax(self.linear(block + "ffn_gate_inp", x))
        result = np.zeros_like(x)
        for token, row in enumerate(probabilities):
            ids = np.argsort(-row, kind="stable")[: self.used]
            weight = row[ids] / max(row[ids].sum(), 6.103515625e-5)
            if self.expert_scale != 0:
                weight = weight * self.expert_scale
            for w, expert in zip(weight, ids):
                gate = self.expert_product(block, "gate", expert, x[token])
                up = self.expert_product(block, "up", expert, x[token])
                result[token] += w * self.expert_product(block, "down", expert, silu(gate) * up)
        return result

    def feed_forward(self, layer, x):
        block = f"blk.{layer}."
        if block + "ffn_gate_inp.weight" in self.weights:
            return self.experts(block, x)
        hidden = silu(self.linear(block + "ffn_gate", x)) * self.linear(block + "ffn_up", x)
        return self.linear(block + "ffn_down", hidden)

    def logits(self, tokens):
        """[tokens, vocabulary] in float64."""
        x = self.weights["token_embd.weight"][np.asarray(tokens)]
        for layer in range(self.layers):
            norm = self.weights[f"blk.{layer}.attn_norm.weight"]
            x = x + self.attention(layer, rms_norm(x, norm, self.epsilon))
            norm = self.weights[f"blk.{layer}.ffn_norm.weight"]
            x = x + self.feed_forward(layer, rms_norm(x, norm, self.epsilon))
        x = rms_norm(x, self.weights["output_norm.weight"], self.epsilon)
        if "output.weight" in self.weights:
            return self.linear("output", x)
        y = self.prepared("token_embd", x) @ self.weights["token_embd.weight"].T
        return y + self.weights.get("output.bias", 0.0)

    def greedy(self, tokens, count):
        """The likeliest continuation, and the gap to the second best at every step."""
        tokens, chosen, margins = list(tokens), [], []
        for _ in range(count):
            row = self.logits(tokens)[-1]
            best = np.sort(row)[::-1]
            chosen.append(int(np.argmax(row)))
            margins.append(float(best[0] - best[1]))
            tokens.append(chosen[-1])
        return chosen, margins


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--tokens", required=True)
    parser.add_argument("--logits")
    parser.add_argument("--greedy", type=int, default=0)
    parser.add_argument("-c", "--context", type=int, default=512)
    parser.add_argument("--cache-type-k", default="f32", choices=["f32", "f16", "q8_0"])
    parser.add_argument("--cache-type-v", default="f32", choices=["f32", "f16", "q8_0"])
    arguments = parser.parse_args()
    model = ReferenceModel(
        arguments.model, arguments.context, arguments.cache_type_k, arguments.cache_type_v)
    tokens = [int(token) for token in arguments.tokens.split(",")]
    if arguments.logits:
        model.logits(tokens).astype("<f4").tofile(arguments.logits)
    if arguments.greedy:
        print(*model.greedy(tokens, arguments.greedy)[0])
    return 0


if __name__ == "__main__":
    sys.exit(main())
