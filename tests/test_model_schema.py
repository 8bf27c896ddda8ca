"""A model file brings no code: files built by hand, each with a trap that would leave a canary behind."""

from __future__ import annotations

import io
import json
import re
import zipfile
from pathlib import Path

import numpy as np
import pytest
import skops.io
from numpy.testing import assert_allclose

from belated import DelayedFeedbackClassifier, FieldMatrix, load, persistence
from belated.model_schema import strange_parts

KEPT = Path(__file__).parent / "model_files"


def node(loader, cls, **more):
    module, name = cls.rsplit(".", 1)
    return {"__loader__": loader, "__module__": module, "__class__": name, **more}


def text(value):
    return node("JsonNode", "builtins.str", content=json.dumps(value), is_json=True)


def listing(*items):
    return node("ListNode", "builtins.list", content=list(items))


def together(*items):
    return node("TupleNode", "builtins.tuple", content=list(items))


def mapping(**items):
    kinds = listing(*(node("TypeNode", "builtins.str") for _ in items))
    return node("DictNode", "builtins.dict", content=items, key_types=kinds)


def function(name):
    return node("FunctionNode", name)


def traps(canary):
    """Nodes that touch the canary if they are built as skops builds what it is told to trust."""
    call = f"open({str(canary)!r}, 'w').close()"
    link = mapping(_=text(1))
    sneaky = node(
        "MethodNode",
        "belated.risks.links.Sigmoid",
        content={"func": "__getattribute__", "obj": node("ObjectNode", "belated.risks.links.Sigmoid", content=link)},
    )
    return {
        "constructor": node("ConstructorFromReduceNode", "builtins.exec", content=together(text(call))),
        "list": node("ListNode", "pathlib.Path", content=[text(str(canary))]),
        "list of calls": node("ListNode", "subprocess.check_call", content=[text("touch"), text(str(canary))]),
        "array": node("NdArrayNode", "builtins.exec", type="numpy", file="call.npy"),
        "function": function("os.system"),
        "belated's own function": function("belated.risks.links.dataclass"),
        "attribute of a module": node("ObjectNode", "belated.risks.links.dataclass"),
        "method": sneaky,
        "partial": node("PartialNode", "functools.partial", content={
            "func": function("os.system"), "args": together(text("true")), "kwds": mapping(), "namespace": mapping()}),
        "operator": node("OperatorFuncNode", "operator.methodcaller", attrs=together(text("system"))),
        "type": node("TypeNode", "subprocess.Popen"),
        "key type": node("DictNode", "builtins.dict", content={call: text(1)}, key_types=listing(
            node("TypeNode", "builtins.exec"))),
        "dict": node("DictNode", "subprocess.Popen", content={}, key_types=listing()),
        "default dict": node("DefaultDictNode", "collections.defaultdict", content={
            "main": mapping(), "default_factory": function("os.system")}),
        "object of another library": node("ObjectNode", "sklearn.linear_model.LogisticRegression"),
        "random generator": node("RandomGeneratorNode", "numpy.random.Generator", content={
            "bit_generator": mapping(bit_generator=text("seed")), "seed_seq": mapping()}),
    }  # fmt: skip


# Traps that run code when built; the others are steps on the way.
SPRUNG = ("constructor", "list of calls", "key type")


def crafted(path, about, canary):
    """A model file whose ``about`` is any node."""
    data = skops.io.dumps(
        {"format": 2, "classifier": fitted(), "features": {}, "others": [], "about": "{}"}, compression=0
    )
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(path, "w") as new:
        schema = json.loads(old.read("schema.json"))
        schema["content"]["about"] = about
        for name in old.namelist():
            if name != "schema.json":
                new.writestr(name, old.read(name))
        new.writestr("schema.json", json.dumps(schema))
        array = io.BytesIO()
        np.save(array, np.array(f"open({str(canary)!r}, 'w').close()"))
        new.writestr("call.npy", array.getvalue())


def fitted():
    return DelayedFeedbackClassifier("bl").fit(np.eye(4), [0, 1, 0, 1])


@pytest.mark.parametrize("kind", list(traps("")))
def test_a_model_file_cannot_bring_code(kind, tmp_path):
    canary = tmp_path / "canary"
    for place in (
        lambda trap: trap,
        lambda trap: mapping(inside=listing(trap)),
        lambda trap: {**text(1), "more": trap},
    ):
        crafted(tmp_path / "m.skops", place(traps(canary)[kind]), canary)
        with pytest.raises(ValueError, match=r"m\.skops: refused, because it holds"):
            load(tmp_path / "m.skops")
        assert not canary.exists()


@pytest.mark.parametrize("kind", SPRUNG)
def test_the_traps_are_real(kind, tmp_path, monkeypatch):
    """Without the check before building, with everything trusted that the file names, the canary is there."""
    canary = tmp_path / "canary"
    crafted(tmp_path / "m.skops", traps(canary)[kind], canary)
    data = (tmp_path / "m.skops").read_bytes()
    monkeypatch.setattr(persistence, "strange_parts", lambda schema: [])
    monkeypatch.setattr(persistence, "trusted", lambda: skops.io.get_untrusted_types(data=data))
    with pytest.raises(ValueError, match="damaged or changed"):
        load(tmp_path / "m.skops")
    assert canary.exists()


def test_a_class_inside_of_a_known_one_is_looked_at_too():
    trap = node("ObjectNode", "os.system")
    inside = node("ObjectNode", "belated.models.linear.LinearModel", content=mapping(l2=trap))
    assert strange_parts(inside) == ["os.system"]


def test_other_formats_and_versions_are_refused_in_words(tmp_path):
    crafted(tmp_path / "m.skops", text("{}"), tmp_path / "canary")
    assert load(tmp_path / "m.skops").predict(np.eye(4)).shape == (4,)
    rewrite(tmp_path / "m.skops", '"content": "2"', '"content": "99"')
    with pytest.raises(
        ValueError, match=r"m\.skops: a model file of format 99, and this version of belated .* reads format 2"
    ):
        load(tmp_path / "m.skops")
    crafted(tmp_path / "m.skops", text("{}"), tmp_path / "canary")
    rewrite(tmp_path / "m.skops", "LinearModel", "CubicModel")
    with pytest.raises(
        ValueError, match=r"m\.skops: refused, .*models\.linear\.CubicModel, which this version of belated"
    ):
        load(tmp_path / "m.skops")


def rewrite(path, old, new):
    with zipfile.ZipFile(path) as file:
        parts = {name: file.read(name) for name in file.namelist()}
    assert old in parts["schema.json"].decode()
    parts["schema.json"] = parts["schema.json"].replace(old.encode(), new.encode(), 1)
    with zipfile.ZipFile(path, "w") as file:
        for name, content in parts.items():
            file.writestr(name, content)


def test_damage_is_told_with_the_name_of_the_file(tmp_path):
    path = tmp_path / "m.skops"
    fitted().save(path)
    whole = path.read_bytes()
    for place in range(0, len(whole), max(len(whole) // 60, 1)):
        path.write_bytes(whole[:place])
        with pytest.raises(ValueError, match=r"^m\.skops: "):
            load(path)
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        assert complaint(path) is None or complaint(path).startswith("m.skops: ")
    for lost in ("model_", "link_", "classes_"):
        path.write_bytes(whole)
        rewrite(path, f'"{lost}"', '"nothing_"')
        with pytest.raises(ValueError, match=f"m\\.skops: .*damaged or changed.*no {lost}"):
            load(path)


def complaint(path):
    """What loading says; None where the damage is to a byte that means nothing."""
    try:
        load(path).predict_proba(np.eye(4))
    except ValueError as error:
        return str(error)


@pytest.mark.parametrize("name", ["format2-table", "format2-fields"])
def test_model_files_of_every_format_are_read_for_ever(name):
    about = json.loads((KEPT / f"{name}.json").read_text())
    if "n_columns" in about:
        rows = FieldMatrix(np.array(about["rows"]), about["n_columns"])
    else:
        pandas = pytest.importorskip("pandas")
        rows = pandas.DataFrame(about["rows"]["data"], columns=about["rows"]["columns"])
    assert_allclose(load(KEPT / f"{name}.skops").predict_proba(rows)[:, 1], about["p"], rtol=1e-12)


def test_weights_that_do_not_fit_their_columns_are_refused(tmp_path):
    """Compiled code would read beyond them."""
    whole = (KEPT / "format2-fields.skops").read_bytes()
    for old, new in (('"1048576"', '"1"'), ('"places"', '"columns"')):
        (tmp_path / "m.skops").write_bytes(whole)
        rewrite(tmp_path / "m.skops", old, new)
        assert re.match(r"m\.skops: .*damaged or changed", str(complaint_of(tmp_path / "m.skops")))


def complaint_of(path):
    try:
        load(path)
    except ValueError as error:
        return str(error)
