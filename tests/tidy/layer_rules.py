"""Which folder may use which: #include lines and the DEPS of CMake against one table."""

import re

from source_tree import Finding

# Folder -> folders of ours that its files may include and its library may list in DEPS. The longest folder that holds a
# file decides. The linker checks calls; this catches what needs no call.
MAY_USE = {
    "common/base": [],
    "common/flags": [],
    "common/host": ["common/base"],
    "common/metrics": ["common/base"],
    "common/http": ["common/base"],
    "common/tensor": ["common/base"],
    "common/graph": ["common/base", "common/tensor"],
    "common/regex": ["common/base"],
    "common/device": ["common/base", "common/tensor", "common/graph"],
    "common/cpu": ["common/base", "common/tensor", "common/graph", "common/device", "common/cpu/kernels"],
    "common/cpu/kernels": ["common/tensor/quant/block_layout.h"],
    "common/blas": ["common/base", "common/tensor", "common/graph", "common/device", "common/cpu", "common/cpu/kernels"],
    "common/transport": ["common/base"],
    "common/collectives": ["common/base", "common/tensor", "common/graph", "common/device", "common/transport"],
    "common/gguf": ["common/base", "common/tensor"],
    "common/digest": ["common/base", "common/tensor", "common/gguf"],
    "common/tls": ["common/base"],
    "common/program": ["common/base", "common/metrics", "common/tensor", "common/graph", "common/device", "common/collectives"],
    "proto": [],
    "rpc_backend/protocol": ["proto", "common/base", "common/host", "common/tensor", "common/graph", "common/device",
                             "common/program", "common/transport", "common/digest", "common/tls"],
    "rpc_backend/client": ["rpc_backend/protocol", "proto", "common/base", "common/host", "common/tensor", "common/graph", "common/device",
                           "common/program", "common/collectives", "common/transport", "common/digest", "common/tls"],
    "rpc_backend/membership": ["rpc_backend/protocol", "proto", "common/base", "common/transport", "common/tls"],
    "worker": ["common", "proto", "rpc_backend/protocol", "rpc_backend/membership"],
    "coordinator": ["common", "coordinator", "proto", "rpc_backend/client", "rpc_backend/membership", "rpc_backend/protocol/grpc_tls", "rpc_backend/protocol/silence_protobuf.h",
                    "rpc_backend/protocol/version.h"],
    "coordinator/json": ["common/base"],
    "coordinator/tokenizer": ["common/base", "common/regex", "common/tensor", "common/gguf"],
    "coordinator/chat/jinja": ["common/base"],
    "coordinator/chat": ["common/base", "coordinator/json", "coordinator/tokenizer", "coordinator/grammar",
                         "coordinator/chat/jinja"],
    "coordinator/models": ["common/base", "common/tensor", "common/graph", "common/gguf"],
    "coordinator/placement": ["common/base", "common/regex", "common/tensor", "common/graph", "common/gguf",
                              "common/device", "coordinator/json", "coordinator/models"],
    "coordinator/weights": ["common/base", "common/tensor", "common/graph", "common/gguf", "common/device",
                            "common/program", "coordinator/models"],
    "coordinator/kv_cache": ["common/base", "common/tensor", "common/graph", "common/device", "common/program"],
    "coordinator/scheduler": ["common/base", "common/tensor", "common/graph", "common/device", "common/program",
                              "common/collectives"],
    "coordinator/meta": ["common/base", "common/tensor", "common/graph", "common/device", "common/program",
                         "common/collectives", "coordinator/scheduler"],
    "coordinator/sampling": ["common/base", "common/graph"],
    "coordinator/grammar": ["common/base", "coordinator/json", "coordinator/sampling", "coordinator/tokenizer"],
    "coordinator/engine": ["common", "coordinator/tokenizer", "coordinator/models", "coordinator/weights",
                           "coordinator/kv_cache", "coordinator/scheduler", "coordinator/meta",
                           "coordinator/placement", "coordinator/sampling"],
    "coordinator/explain": ["common/base", "common/tensor", "common/graph", "common/device", "common/program",
                            "common/collectives", "coordinator/models",
                            "coordinator/placement", "coordinator/scheduler", "coordinator/engine"],
    "coordinator/serving": ["common/base", "common/graph", "coordinator/tokenizer", "coordinator/models", "coordinator/kv_cache",
                            "coordinator/sampling", "coordinator/engine", "common/metrics"],
    "coordinator/http": ["common/base", "common/http", "common/metrics", "coordinator/json", "coordinator/tokenizer", "coordinator/sampling", "coordinator/grammar",
                         "coordinator/chat", "coordinator/engine", "coordinator/serving"],
    "coordinator/cli": ["common", "coordinator"],
    "tests": ["common", "coordinator", "worker", "rpc_backend", "proto", "tests"],
}

# The kernels of several instruction sets share nothing inline: C headers, intrinsics and their own files only.
KERNEL_HEADERS = {"stddef.h", "stdint.h", "string.h", "math.h", "float.h", "limits.h", "assert.h", "immintrin.h",
                  "arm_neon.h", "asm/hwcap.h", "sys/auxv.h"}

# Library headers that belong to certain folders: prefix -> folders.
EXTERNAL_HEADERS = {
    "gtest/": ["tests"],
    "gmock/": ["tests"],
    "benchmark/": ["tests"],
    "google/protobuf/": ["rpc_backend", "worker/service", "worker/cluster_client", "coordinator/cluster", "tests"],
    "grpc": ["rpc_backend", "worker/service", "worker/cluster_client", "coordinator/cluster", "tests"],
    "ucp/": ["common/transport/ucx"],
    "ucs/": ["common/transport/ucx"],
    "cuda": ["worker"],
    "nccl": ["worker"],
    "vulkan/": ["worker"],
    "httplib.h": ["common/http", "tests"],
    "prometheus/": ["common/metrics", "tests"],
    "openssl/": ["common/digest", "common/tls", "common/transport", "coordinator/cli/certs", "tests"],
    "pcre2.h": ["common/regex"],
    "utf8proc.h": ["coordinator/chat/jinja"],
    "nlohmann/": ["coordinator", "tests"],
    "histedit.h": ["coordinator/cli/chat"],
    "CLI/": ["common/flags", "coordinator/cli", "coordinator/main.cc", "worker/command_line.cc", "tests/unit/coordinator/cli"],
    "immintrin.h": ["common/cpu/kernels", "common/base/cpu_features.cc",
                    "common/cpu/limits/peak_loops.cc", "tests"],
    "arm_neon.h": ["common/cpu/kernels", "tests"],
}


def inside(path, folder):
    return path == folder or path.startswith(folder + "/")


def owner(path):
    """The entry of MAY_USE that governs a file, or None."""
    folders = [folder for folder in MAY_USE if inside(path, folder)]
    return max(folders, key=len, default=None)


def allowed(folder, target):
    """Whether a file of `folder` may use the file or folder `target` of ours."""
    if owner(target) == folder or target == folder:
        return True
    return any(inside(target, other) for other in MAY_USE[folder])


def _check_kernel_include(file, number, header, quoted):
    if quoted:
        if inside(header, "common/cpu/kernels") or header in MAY_USE["common/cpu/kernels"] or "/" not in header:
            return
    elif header in KERNEL_HEADERS:
        return
    yield Finding("include", file.path, number,
                  f"kernels may include only C headers, intrinsics and their own files, not {header}")


def _check_external_include(file, number, header):
    for prefix, folders in EXTERNAL_HEADERS.items():
        if header.startswith(prefix) and not any(inside(file.path, folder) for folder in folders):
            yield Finding("include", file.path, number, f"<{header}> belongs to {', '.join(folders)}")


def check_includes(tree):
    for file in tree.cpp_files():
        folder = owner(file.path)
        if folder is None:
            yield Finding("include", file.path, 0, "no row of MAY_USE in tests/tidy/layer_rules.py covers this folder")
            continue
        for number, header, quoted in file.includes():
            if header.startswith("../") or "/../" in header:
                yield Finding("include", file.path, number, f"write the path from the root instead of {header}")
            elif folder == "common/cpu/kernels":
                yield from _check_kernel_include(file, number, header, quoted)
            elif not quoted or owner(header) is None:
                yield from _check_external_include(file, number, header)
            elif not allowed(folder, header):
                yield Finding("include", file.path, number,
                              f"{folder} may not use {header}; it may use: {', '.join(MAY_USE[folder]) or 'nothing'}")


def _without_comments(text):
    return re.sub(r"#[^\n]*", "", text)


def _libraries(tree):
    """(CMake file, library, its DEPS) of every add_layer_library."""
    for file in tree.text_files():
        if file.name != "CMakeLists.txt":
            continue
        for match in re.finditer(r"add_layer_library\(\s*(\w+)([^)]*)\)", _without_comments(file.text)):
            words = match.group(2).split()
            deps = words[words.index("DEPS") + 1:] if "DEPS" in words else []
            yield file, match.group(1), [word for word in deps if word not in ("SOURCES", "HEADERS")]


def check_library_deps(tree):
    """DEPS of a library obey the same table as its includes."""
    libraries = list(_libraries(tree))
    folder_of = {name: file.folder for file, name, _ in libraries}
    for file, name, deps in libraries:
        folder = owner(file.folder)
        for dep in deps:
            if dep in folder_of and folder is not None and not (
                    allowed(folder, folder_of[dep]) or inside(folder_of[dep], file.folder)):
                yield Finding("layer", file.path, 0, f"{name} may not depend on {dep} ({folder_of[dep]})")
