"""What an order needs on the host's disk: decisions on facts, and reading real files."""

from __future__ import annotations

import json
import struct
import time
from dataclasses import replace
from pathlib import Path

import pytest

from cutover_agent import checkpoint, dropins, gguf, mounts, readable, requires, views
from cutover_agent.checkpoint import Facts
from cutover_agent.order import Edit, Files, Requirement
from cutover_agent.processes import Process
from sandbox.checkpoint import make_checkpoint, make_gguf

WHOLE = Facts(
    "/m",
    {"config.json": 9, "a.safetensors": 100, "b.safetensors": 200},
    ("a.safetensors", "b.safetensors"),
    {"a.safetensors": 100, "b.safetensors": 200},
)


@pytest.mark.parametrize(
    ("facts", "says"),
    [
        (WHOLE, ""),
        (Facts("/m", problem="is not there"), "the checkpoint /m is not there"),
        (Facts("/m"), "the checkpoint folder /m is empty"),
        (Facts("/m", {"config.json": 1}), "the checkpoint /m holds no weights"),
        (
            replace(WHOLE, files={"a.safetensors": 100, "b.safetensors": 200}),
            "the checkpoint /m has no config.json",
        ),
        (
            replace(WHOLE, files={"config.json": 9, "a.safetensors": 100}),
            "the checkpoint /m lacks b.safetensors, of 2 in its index: download it again",
        ),
        (
            replace(WHOLE, files={**WHOLE.files, "b.safetensors": 199}),
            "the checkpoint /m has cut or damaged shards: b.safetensors (199 bytes of 200)",
        ),
    ],
)
def test_a_checkpoint_is_judged_by_what_lies_there(facts: Facts, says: str) -> None:
    assert checkpoint.reasons(facts) == ([says] if says else [])


@pytest.mark.parametrize(
    ("facts", "there"),
    [
        (Facts("/m.bin", {"m.bin": 9}, problem="is no folder and no GGUF"), True),
        (Facts("/m", {"any.pt": 9}), True),
        (Facts("/m"), False),
        (Facts("/m", problem="is not there"), False),
    ],
)
def test_a_server_of_another_kind_only_needs_something_there(facts: Facts, there: bool) -> None:
    assert (checkpoint.absence(facts) == []) == there


def test_many_missing_shards_are_counted() -> None:
    facts = Facts("/m", {"config.json": 1}, tuple(f"s{n}" for n in range(119)))
    assert "s0, s1, s10 and 116 more, of 119 in its index" in checkpoint.reasons(facts)[0]


def test_a_whole_folder_has_nothing_to_say_and_every_damage_is_seen(tmp_path: Path) -> None:
    place = tmp_path / "m"
    make_checkpoint(place, shards=5, shard_bytes=64, config={})
    assert checkpoint.reasons(checkpoint.read(str(place))) == []
    shard = place / "model-00003-of-00005.safetensors"
    data = shard.read_bytes()
    shard.write_bytes(data[:-1])
    assert "00003" in checkpoint.reasons(checkpoint.read(str(place)))[0]
    shard.write_text("version https://git-lfs.invalid/spec/v1\noid sha256:0\nsize 12\n")
    assert "00003" in checkpoint.reasons(checkpoint.read(str(place)))[0]
    shard.unlink()
    assert "lacks model-00003" in checkpoint.reasons(checkpoint.read(str(place)))[0]
    shard.symlink_to(tmp_path / "nowhere")
    assert "lacks model-00003" in checkpoint.reasons(checkpoint.read(str(place)))[0]
    (place / "model.safetensors.index.json").write_text("{}")
    assert "is no index of shards" in checkpoint.reasons(checkpoint.read(str(place)))[0]


def test_a_gguf_file_is_whole_cut_or_a_part(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    make_gguf(path, tensors=4, tensor_bytes=64)
    assert gguf.problem(path) == ""
    data = path.read_bytes()
    path.write_bytes(data[:-1])
    assert gguf.problem(path) == f"is cut: {len(data) - 1} bytes of {len(data)}"
    path.write_bytes(data[:100])
    assert "is cut or damaged" in gguf.problem(path)
    path.write_bytes(b"<html>")
    assert gguf.problem(path) == "is no GGUF file"
    pair = struct.pack("<Q", 11) + b"split.count" + struct.pack("<IH", 2, 9)
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + pair)
    assert gguf.problem(path).startswith("is one of 9 parts: merge them")
    assert checkpoint.reasons(checkpoint.read(str(path)))[0].endswith("--merge")


def test_a_tokenizer_is_a_folder_that_has_one() -> None:
    assert checkpoint.tokenizer_reasons("/t", frozenset({"tokenizer.json"})) == []
    assert "is not there" in checkpoint.tokenizer_reasons("/t", None)[0]
    assert "holds none of tokenizer.json" in checkpoint.tokenizer_reasons("/t", frozenset())[0]
    assert checkpoint.config_reasons("/t", frozenset({"x"})) == ["/t holds no config.json"]


@pytest.mark.parametrize(
    ("declared", "expected", "there", "says"),
    [
        ("", set(), set(), []),
        ("", {"/models"}, {"/", "/models"}, []),
        ("", {"/models"}, {"/"}, ["/models is not mounted, and /models/a is on it"]),
        ("", {"/mod"}, {"/"}, []),
        ("/models", set(), {"/"}, ["/models is not mounted, and the deployment declares it"]),
        ("/models", set(), {"/models"}, []),
    ],
)
def test_a_missing_mount_is_named(
    declared: str, expected: set[str], there: set[str], says: list[str]
) -> None:
    told = mounts.reasons(["/models/a"], declared, expected, there)
    assert len(told) == len(says)
    assert all(text.startswith(begin) for text, begin in zip(told, says, strict=True))


def test_mounts_are_read_from_fstab_and_from_units(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fstab = tmp_path / "fstab"
    fstab.write_text("# /no\nUUID=1 / ext4\nnas:/m /my\\040models nfs ro 0 0\nx none swap sw\n")
    (tmp_path / "srv-m.mount").write_text("[Mount]\nWhat=x\nWhere=/srv/m\n")
    monkeypatch.setattr(mounts, "FSTAB", fstab)
    monkeypatch.setattr(mounts, "UNITS", tmp_path)
    assert mounts.expected() == {"/my models", "/srv/m"}
    assert "/" in mounts.there()


def test_a_patched_file_is_there_undone_or_gone(tmp_path: Path) -> None:
    path = tmp_path / "x.py"
    path.write_text("patched")
    digest = requires.digests([Requirement(str(path), "")])[str(path)]
    wanted = [Requirement(str(path), digest or "")]
    assert requires.reasons(wanted, requires.digests(wanted)) == []
    link = tmp_path / "link.py"
    link.symlink_to(path)
    linked = [Requirement(str(link), digest or "")]
    assert requires.reasons(linked, requires.digests(linked)) == []
    path.write_text("upgraded")
    found = requires.digests(wanted)
    (said,) = requires.reasons(wanted, found)
    assert "an upgrade may have undone the patch" in said
    assert f"`sha256: {found[str(path)]}`" in said, "the line to paste, where the file is right"
    path.unlink()
    assert "is not there" in requires.reasons(wanted, requires.digests(wanted))[0]


UNIT = "[Unit]\nAfter=x\n[Service]\nExecStart=/bin/a \\\n    --model m\nEnvironment=A=b\n"


@pytest.mark.parametrize(
    ("text", "shadowed"),
    [
        ("[Service]\nExecStart=\nExecStart=/bin/x\n", "ExecStart"),
        ("[Service]\n  Environment=CUDA_VISIBLE_DEVICES=0\n", "Environment"),
        ("[Service]\nPrivateDevices=yes\n", "PrivateDevices"),
        ("[Service]\nEnvironment=A=c\nExecStart=x\n", "Environment, ExecStart"),
        ("[Unit]\nAfter=mine.service\n", ""),
        ("[Service]\nOOMScoreAdjust=-5\n# Environment=A=c\n", ""),
    ],
)
def test_a_drop_in_that_shadows_what_we_render_is_named(text: str, shadowed: str) -> None:
    told = dropins.reasons("m.service", UNIT, {"/etc/m.service.d/o.conf": text})
    assert bool(told) == bool(shadowed)
    if shadowed:
        assert told[0].startswith(f"/etc/m.service.d/o.conf changes {shadowed} of m.service")


def test_drop_ins_of_prefixes_and_of_all_services_apply_as_well() -> None:
    assert dropins.names("vllm-kimi-k25.service") == [
        "vllm-kimi-k25.service.d",
        "vllm-kimi-.service.d",
        "vllm-.service.d",
        "service.d",
    ]


def test_drop_ins_are_found_where_systemd_reads_them_but_not_our_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "a-b.service.d"
    folder.mkdir()
    (folder / "override.conf").write_text("[Service]\nNice=1\n")
    (folder / "90-cutover-trial.conf").write_text("[Service]\nRestart=no\n")
    (folder / "notes.txt").write_text("x")
    monkeypatch.setattr(dropins, "FOLDERS", (tmp_path,))
    assert list(dropins.on_host("a-b.service")) == [str(folder / "override.conf")]


def test_keys_are_taken_out_by_their_path_or_wherever_they_stand() -> None:
    text = json.dumps({"a": {"k": 1, "b": [{"k": 2, "x": None}]}, "k": None, "z": "é"})
    assert json.loads(views.edited(text, ["k"])[0]) == {"a": {"b": [{"x": None}]}, "z": "é"}
    once, had = views.edited(text, ["a.k", "q", "a.q.r", "z.y"])
    assert had == ["a.k"]
    assert json.loads(once)["k"] is None and "k" not in json.loads(once)["a"]


def test_a_view_is_links_and_edited_copies_and_leaves_the_checkpoint_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(views, "ROOT", tmp_path / "cache" / "views")
    place = tmp_path / "m"
    make_checkpoint(place, shards=2, shard_bytes=64, config={"q": {"kv": 1}, "x": 1})
    before = {path.name: path.read_bytes() for path in place.iterdir()}
    view = views.ROOT / "d" / "1"
    files = Files(view=str(view), edits=(Edit("config.json", ("kv",)),))
    told = views.make(str(place), files)
    assert told == [f"config.json is served without kv, from {view}"]
    assert json.loads((view / "config.json").read_text())["q"] == {}
    assert {path.name for path in view.iterdir()} == set(before)
    assert all(path.is_symlink() for path in view.iterdir() if path.name != "config.json")
    assert {path.name: path.read_bytes() for path in place.iterdir()} == before
    number = view.stat().st_ino
    views.make(str(place), files)
    assert view.stat().st_ino == number, "a view that is right is left as it is"
    (place / "more.safetensors").write_text("x")
    views.make(str(place), files)
    assert (view / "more.safetensors").is_symlink()
    views.retire([str(view)])
    assert view.is_dir()
    views.retire([])
    assert not views.ROOT.parent.exists()


def test_a_view_of_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    files = Files(view="/v", edits=(Edit("config.json", ("a",)),))
    assert "is not there" in views.reasons(str(tmp_path), files)[0]
    (tmp_path / "config.json").write_text("{")
    assert "cannot be read as JSON" in views.reasons(str(tmp_path), files)[0]


def test_what_a_user_cannot_open_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    shard = tmp_path / "s"
    shard.write_text("x")
    shard.chmod(0o600)
    assert readable.reasons([str(shard)], "root") == []
    assert "is not on this host" in readable.reasons([str(shard)], "no-such-user")[0]
    told = readable.reasons([str(shard)], "nobody")
    assert len(told) == 1 and told[0].startswith(f"the user nobody cannot read {shard}: ")


def process(pid: int, unit: str = "") -> Process:
    return Process(pid, 1, 1, "S", "x", ("x",), "root", f"/system.slice/{unit}" if unit else "/")


def test_a_checkpoint_of_real_size_is_looked_at_in_less_than_three_seconds(tmp_path: Path) -> None:
    shards, tensors = 119, 1500  # as the largest in use: half a terabyte, but small tensors here
    entries = {
        f"model.layers.{n}.mlp.experts.{n}.down_proj.weight_scale_inv": {
            "dtype": "BF16",
            "shape": [1],
            "data_offsets": [n * 2, n * 2 + 2],
        }
        for n in range(tensors)
    }
    header = json.dumps(entries).encode()
    data = struct.pack("<Q", len(header)) + header + bytes(tensors * 2)
    names = [f"model-{n:05d}.safetensors" for n in range(shards)]
    for name in names:
        (tmp_path / name).write_bytes(data)
    (tmp_path / "config.json").write_text("{}")
    index = {"weight_map": {f"t{n}": name for n, name in enumerate(names)}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    before = time.process_time()
    assert checkpoint.reasons(checkpoint.read(str(tmp_path))) == []
    assert time.process_time() - before < 3
