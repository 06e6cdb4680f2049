"""A campaign's model as files for other programs: safetensors, ONNX, and a JSON page that says what they hold."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from safetensors import SafetensorError
from safetensors.torch import load, save

from mqnet import __version__
from mqnet.errors import ConfigError, InputError
from mqnet.models.head import Head
from mqnet.models.mlp import FittedHead
from mqnet.project.predict import Predictor
from mqnet.project.sorter import Sorter
from mqnet.server.annotations import NONE_OF_THESE
from mqnet.store.blobs import write_durably

TENSORS, GRAPH, PAGE = "model.safetensors", "model.onnx", "model.json"
FORMAT = "mqnet-head-1"
USED = ("mean", "scale", "w1", "b1", "w2", "b2")
"""What a prediction needs of a head; the rest serves the loop."""


@dataclass(frozen=True)
class Preprocessing:
    """How an item becomes a vector: its kind, the encoder's name (None where the items are vectors), their length."""

    kind: str
    encoder: str | None
    dim: int


def write_model(out: Path, found: Predictor, how: Preprocessing) -> list[Path]:
    """Write the model of a campaign into the folder `out`; only the target model `head` can be written."""
    if not isinstance(found.model, FittedHead):
        raise ConfigError(
            "only the target model 'head' can be exported; this campaign uses another. `mqnet predict` works with it."
        )
    page = _page(found, how)
    heads = {"head": found.model.head, **({"sorter": found.sorter.head} if found.sorter.head is not None else {})}
    tensors = {f"{part}.{name}": getattr(head, name).contiguous() for part, head in heads.items() for name in USED}
    text = json.dumps(page, indent=2, ensure_ascii=False)
    contents = {
        TENSORS: save(tensors, metadata={"mqnet": json.dumps(page)}),
        GRAPH: _graph(heads, found.sorter.threshold, found.classes, how.dim, json.dumps(page)).SerializeToString(),
        PAGE: (text + "\n").encode(),
    }
    for name, content in contents.items():  # the page comes last: where it is, the others are
        write_durably(out / name, content)
    return [out / name for name in contents]


def read_model(folder: Path) -> tuple[Predictor, Preprocessing]:
    """The model `write_model` wrote; anything else is an error that names it."""
    try:
        page = json.loads((folder / PAGE).read_text(encoding="utf-8"))
        tensors = load((folder / TENSORS).read_bytes())
    except (OSError, ValueError, SafetensorError) as error:
        raise InputError(f"'{folder}' holds no exported model: {error}.") from error
    if page.get("format") != FORMAT:
        raise InputError(f"'{folder / PAGE}' says format '{page.get('format')}'; this mqnet reads '{FORMAT}'.")
    junk = page["none_of_these"]
    parts = {part: _head(tensors, part) for part in ("head", "sorter") if f"{part}.w1" in tensors}
    sorter = Sorter(parts.get("sorter"), **junk)
    how = Preprocessing(**page["preprocessing"])
    model = FittedHead(parts["head"], torch.zeros(()), 1.0, 0.0, 0)
    return Predictor(tuple(page["classes"]), model, sorter, how.dim), how


def _page(found: Predictor, how: Preprocessing) -> dict[str, object]:
    sorter = found.sorter
    return {
        "format": FORMAT,
        "mqnet": __version__,
        "classes": list(found.classes),
        "preprocessing": {field.name: getattr(how, field.name) for field in fields(how)},
        "none_of_these": {
            "threshold": sorter.threshold,
            "how": sorter.how,
            "n_known": sorter.n_known,
            "n_ood": sorter.n_ood,
            "kept": sorter.kept,
            "caught": sorter.caught,
        },
        "formula": "logits = relu((x - mean) / scale @ w1 + b1) @ w2 + b2, for `head` (the classes, in order) and "
        "`sorter` (the classes and OOD); an item is none of these when softmax(sorter)[-1] > threshold",
        "outputs": {
            "class": "the most likely known class, by number",
            "confidence": "its probability among the known classes",
            "none_of_these": "the probability of OOD",
            "prediction": f"class, or {len(found.classes)} for '{NONE_OF_THESE}'",
        },
    }


def _head(tensors: Mapping[str, torch.Tensor], part: str) -> Head:
    given = {name: tensors[f"{part}.{name}"] for name in USED}
    hidden = given["w1"].shape[1]
    unused = {
        "loss_w1": torch.zeros(hidden, 1), "loss_b1": torch.zeros(1), "loss_w2": torch.zeros(1),
        "dropout": torch.zeros(()), "bfloat16": torch.tensor(False),
    }  # fmt: skip
    return Head(**given, **unused)


def _graph(
    heads: Mapping[str, Head], threshold: float, classes: tuple[str, ...], dim: int, page: str
) -> onnx.ModelProto:
    """The formula of the page as an ONNX graph: vectors [n, D] to class, confidence, none_of_these, prediction [n]."""
    nodes: list[onnx.NodeProto] = []
    constants: list[onnx.TensorProto] = []

    def constant(name: str, value: np.ndarray) -> str:
        constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def node(kind: str, inputs: list[str], output: str, **attributes: Any) -> str:
        nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        return output

    def probabilities(part: str, head: Head) -> str:
        t = {name: constant(f"{part}.{name}", getattr(head, name).numpy()) for name in USED}
        centred = node("Sub", ["vectors", t["mean"]], f"{part}.centred")
        scaled = node("Div", [centred, t["scale"]], f"{part}.scaled")
        inner = node("Gemm", [scaled, t["w1"], t["b1"]], f"{part}.inner")
        hidden = node("Relu", [inner], f"{part}.hidden")
        logits = node("Gemm", [hidden, t["w2"], t["b2"]], f"{part}.logits")
        return node("Softmax", [logits], f"{part}.probabilities", axis=1)

    p = probabilities("head", heads["head"])
    node("ArgMax", [p], "class", axis=1, keepdims=0)
    node("ReduceMax", [p], "confidence", axes=[1], keepdims=0)
    if "sorter" in heads:
        q = probabilities("sorter", heads["sorter"])
        last = node("Gather", [q, constant("last", np.asarray([len(classes)], dtype=np.int64))], "column", axis=1)
        node("Squeeze", [last, constant("axis", np.asarray([1], dtype=np.int64))], "none_of_these")
    else:
        zero = constant("zero", np.asarray(0, dtype=np.float32))
        node("Mul", ["confidence", zero], "none_of_these")
    is_junk = node("Greater", ["none_of_these", constant("threshold", np.asarray(threshold, np.float32))], "is_junk")
    junk = constant("junk", np.asarray(len(classes), dtype=np.int64))
    node("Where", [is_junk, junk, "class"], "prediction")
    kinds = {"class": TensorProto.INT64, "prediction": TensorProto.INT64}
    outputs = ("class", "confidence", "none_of_these", "prediction")
    graph = helper.make_graph(
        nodes,
        "mqnet",
        [helper.make_tensor_value_info("vectors", TensorProto.FLOAT, ["n", dim])],
        [helper.make_tensor_value_info(name, kinds.get(name, TensorProto.FLOAT), ["n"]) for name in outputs],
        constants,
    )
    # opset 17 and IR 8: what runtimes of the last years read
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, producer_name="mqnet")
    helper.set_model_props(model, {"mqnet": page})
    onnx.checker.check_model(model)
    return model
