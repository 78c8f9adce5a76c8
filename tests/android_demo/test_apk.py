"""The phone app's APK: its signature, its alignment, what it asks of a phone, and that it can be built again."""

import re
import subprocess
import xml.etree.ElementTree as ET
import zipfile
from pathlib import Path

import pytest

from tests.android_demo.apk_file import apk_classes, read_apk
from tests.android_demo.conftest import PROJECT, build_app

PERMISSIONS = {
    "INTERNET",
    "ACCESS_NETWORK_STATE",
    "FOREGROUND_SERVICE",
    "FOREGROUND_SERVICE_DATA_SYNC",
    "POST_NOTIFICATIONS",
    "RECEIVE_BOOT_COMPLETED",
}
ANDROID = "{http://schemas.android.com/apk/res/android}"
PAGE = 16384
ABIS = ("arm64-v8a", "armeabi-v7a", "x86", "x86_64")


def aapt2(*arguments: str) -> str:
    """Run the resource compiler that the build has unpacked."""
    program = PROJECT / "app" / "target" / "android" / "tools" / "aapt2"
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=True).stdout


def apk_tool(*arguments: str) -> "subprocess.CompletedProcess[str]":
    jar = PROJECT / "apk" / "target" / "edgefl-apk.jar"
    return subprocess.run(["java", "-jar", str(jar), *arguments], capture_output=True, text=True)


def verified(apk: Path) -> "subprocess.CompletedProcess[str]":
    return apk_tool("verify", "--apk", str(apk), "--min-sdk", "26")


def manifest_of(apk: Path) -> ET.Element:
    """Return the manifest inside an APK, as aapt2 reads it, as a tree of elements again."""
    root = ET.Element("nothing")
    path = [(-1, root)]
    for line in aapt2("dump", "xmltree", "--file", "AndroidManifest.xml", str(apk)).splitlines():
        depth = len(line) - len(line.lstrip())
        if found := re.match(r"\s*E: (\S+)", line):
            while path[-1][0] >= depth:
                path.pop()
            path.append((depth, ET.SubElement(path[-1][1], found[1])))
        elif found := re.match(r'\s*A: (?:http://\S+?:)?(\w+)(?:\(0x\w+\))?=("?)(.*?)\2( \(Raw.*)?$', line):
            path[-1][1].set(found[1], found[3])
    return root[0]


def test_the_signature_is_of_schemes_2_and_3_and_breaks_with_a_byte(apk: Path, tmp_path: Path) -> None:
    done = verified(apk)
    assert done.returncode == 0, done.stderr
    assert "schemes 2 and 3" in done.stdout
    changed = tmp_path / "changed.apk"
    data = bytearray(apk.read_bytes())
    data[read_apk(apk)["classes.dex"].start + 1000] ^= 1
    changed.write_bytes(data)
    done = verified(changed)
    assert done.returncode != 0
    assert "digest" in done.stderr.lower()


def test_files_are_stored_at_words(apk: Path) -> None:
    files = read_apk(apk)
    assert {"AndroidManifest.xml", "classes.dex", "resources.arsc"} <= files.keys()
    assert [file.name for file in files.values() if file.method != 0 or file.start % 4] == []


def test_it_asks_for_six_permissions_and_nothing_else(apk: Path) -> None:
    badging = aapt2("dump", "badging", str(apk))
    asked = re.findall(r"^uses-permission[^:]*: name='([^']+)'", badging, re.MULTILINE)
    assert sorted(asked) == sorted(f"android.permission.{name}" for name in PERMISSIONS)
    assert "uses-permission-sdk" not in badging
    assert "package: name='org.edgefl.app'" in badging
    assert "minSdkVersion:'26'" in badging
    assert "targetSdkVersion:'35'" in badging
    assert "application-debuggable" not in badging  # with debugging, adb reads an app's private files


def test_only_the_launcher_and_the_link_are_open_to_other_apps(apk: Path) -> None:
    application = manifest_of(apk).find("application")
    assert application is not None
    components = {part.get("name", "").lstrip("."): part for part in application if part.get("name")}
    assert components.keys() == {"screens.MainActivity", "phone.TrainingService", "phone.NightJob"}
    assert all(part.get("exported") in ("true", "false") for part in components.values())
    assert [name for name, part in components.items() if part.get("exported") == "true"] == ["screens.MainActivity"]
    links = components["screens.MainActivity"].iter("data")
    found = {(link.get("scheme"), link.get("host"), link.get("path")) for link in links}
    assert found == {("edgefl", "join", None), ("https", "*", "/join")}
    assert components["phone.NightJob"].get("permission") == "android.permission.BIND_JOB_SERVICE"


def test_every_part_of_the_manifest_is_a_class_of_the_app(apk: Path) -> None:
    application = manifest_of(apk).find("application")
    assert application is not None
    named = {part.get("name", "") for part in (application, *application) if part.get("name")}
    assert len(named) == 4
    missing = {"org.edgefl.app" + name for name in named} - apk_classes(read_apk(apk))
    assert missing == set()


def test_nothing_is_backed_up_and_clear_text_is_refused(apk: Path) -> None:
    application = manifest_of(apk).find("application")
    assert application is not None
    assert application.get("allowBackup") == "false"
    assert application.get("usesCleartextTraffic") == "false"
    assert {"dataExtractionRules", "fullBackupContent", "networkSecurityConfig"} <= set(application.keys())
    rules = ET.parse(PROJECT / "app" / "src" / "main" / "res" / "xml" / "network_security_config.xml").getroot()
    base = rules.find("base-config")
    assert base is not None
    assert base.get("cleartextTrafficPermitted") == "false"
    open_to = [domain.text for config in rules.iter("domain-config") for domain in config.iter("domain")]
    assert open_to == ["localhost", "127.0.0.1"]
    assert not list(rules.iter("debug-overrides"))


def test_without_the_engine_the_app_says_so_and_has_nothing_of_it(apk: Path) -> None:
    files = read_apk(apk)
    assert files["assets/engine.txt"].content == b"none\n"
    assert [name for name in files if name.startswith("lib/")] == []
    assert [name for name in apk_classes(files) if name.startswith("ai.onnxruntime")] == []


@pytest.fixture(scope="module")
def engine(client_jar: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an Android library like the engine's: its classes and one more, and a small library a processor."""
    folder = tmp_path_factory.mktemp("engine")
    source = folder / "Mark.java"
    source.write_text("package ai.onnxruntime; public final class Mark {}", encoding="utf-8")
    subprocess.run(["javac", "--release", "8", "-Xlint:-options", "-d", str(folder), str(source)], check=True)
    with zipfile.ZipFile(client_jar) as jar, zipfile.ZipFile(folder / "classes.jar", "w") as classes:
        for name in jar.namelist():
            if re.fullmatch(r"ai/onnxruntime/[\w$/]+\.class", name):
                classes.writestr(name, jar.read(name))
        classes.write(folder / "ai" / "onnxruntime" / "Mark.class", "ai/onnxruntime/Mark.class")
    with zipfile.ZipFile(folder / "onnxruntime-android-0.aar", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(folder / "classes.jar", "classes.jar")
        archive.writestr("AndroidManifest.xml", "<manifest package='ai.onnxruntime'/>")
        for i, abi in enumerate(ABIS):
            for name in ("libonnxruntime.so", "libonnxruntime4j_jni.so"):
                archive.writestr(f"jni/{abi}/{name}", b"\x7fELF" + abi.encode() * (1000 + 777 * i))
    return folder / "onnxruntime-android-0.aar"


def test_the_same_bytes_elsewhere_and_with_an_engine_its_own_classes_and_libraries(
    apk: Path, elsewhere: Path, engine: Path
) -> None:
    """One test, because both build in the same folder: another path, umask, time zone and locale."""
    again = elsewhere / "app" / "target" / "edgefl.apk"
    done = build_app(elsewhere, "package")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "THERE IS NO ENGINE IN THIS APK" in done.stderr
    assert again.read_bytes() == apk.read_bytes()

    done = build_app(elsewhere, "package", f"-Dedgefl.engine.aar={engine}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Engine onnxruntime-android-0.aar for " + ", ".join(ABIS) in done.stderr
    files = read_apk(again)
    libraries = [file for name, file in files.items() if name.endswith(".so")]
    assert {file.name for file in libraries} == {
        f"lib/{abi}/{name}" for abi in ABIS for name in ("libonnxruntime.so", "libonnxruntime4j_jni.so")
    }
    assert all(file.method == 0 and file.start % PAGE == 0 for file in libraries)
    assert all(file.content.startswith(b"\x7fELF" + file.name.split("/")[1].encode()) for file in libraries)
    assert {"ai.onnxruntime.Mark", "ai.onnxruntime.OrtEnvironment"} <= apk_classes(files)
    assert files["assets/engine.txt"].content.startswith(b"onnxruntime-android-0.aar\nsha256:")
    assert verified(again).returncode == 0


@pytest.mark.parametrize(
    ("mark", "calls"),
    [
        ("", ["power.getCurrentThermalStatus()", "java.util.stream.Stream.of(1).toList()"]),
        ("@RequiresApi(29)", ['android.os.SystemProperties.get("a hidden class")']),
    ],
    ids=["newer", "hidden"],
)
def test_code_for_newer_or_hidden_android_stops_the_build(built_elsewhere: Path, mark: str, calls: list[str]) -> None:
    source = built_elsewhere / "app" / "src" / "main" / "java" / "org" / "edgefl" / "app" / "Mistake.java"
    lines = [
        f"{mark} static Object make{i}(android.os.PowerManager power) {{ return {call}; }}"
        for i, call in enumerate(calls)
    ]
    source.write_text("\n".join(["package org.edgefl.app;", "final class Mistake {", *lines, "}"]), encoding="utf-8")
    done = build_app(built_elsewhere, "process-classes")
    assert done.returncode != 0
    found = re.findall(r"Mistake\.java:(\d+): Undefined reference: ", done.stdout)
    assert found == [str(3 + i) for i in range(len(calls))]
