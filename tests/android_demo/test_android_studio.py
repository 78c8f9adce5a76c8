"""The Gradle files for Android Studio, which these tests cannot run, say the same as the poms."""

import re
import xml.etree.ElementTree as ET

from tests.android_demo.conftest import PROJECT

POM = "{http://maven.apache.org/POM/4.0.0}"
PARENT = ET.parse(PROJECT / "pom.xml").getroot()
GRADLE = (PROJECT / "app" / "build.gradle.kts").read_text(encoding="utf-8")


def value(name: str) -> str:
    """Return what app/build.gradle.kts sets a name to."""
    found = re.findall(rf'\b{name} = "?([\w.]+)"?$', GRADLE, re.MULTILINE)
    assert len(found) == 1, name
    return str(found[0])


def of_pom(name: str) -> str:
    return PARENT.findtext(f"{POM}properties/{POM}{name}") or ""


def test_sdk_numbers_and_versions_are_those_of_the_pom() -> None:
    assert value("namespace") == value("applicationId") == of_pom("android.package")
    assert value("minSdk") == of_pom("android.minSdk")
    assert value("targetSdk") == value("compileSdk") == of_pom("android.targetSdk")
    assert value("versionCode") == of_pom("android.versionCode")
    assert value("versionName") == PARENT.findtext(f"{POM}version")
    java = of_pom("maven.compiler.release")
    assert value("sourceCompatibility") == value("targetCompatibility") == f"JavaVersion.VERSION_{java}"


def test_libraries_have_the_poms_versions() -> None:
    managed = {
        found.findtext(f"{POM}artifactId"): found.findtext(f"{POM}version") or ""
        for found in PARENT.iter(f"{POM}dependency")
    }
    managed["onnxruntime-android"] = of_pom("onnxruntime.version")
    named = re.findall(r'mplementation\("[\w.]+:([\w-]+):([\d.]+)"\)', GRADLE)
    assert {name for name, _ in named} == {"onnxruntime-android", "junit", "robolectric"}
    assert all(managed[name] == version for name, version in named)


def test_the_manifest_leaves_to_each_build_what_it_sets() -> None:
    """Android Studio refuses a package in a manifest, and numbers in two places would differ one day."""
    manifest = ET.parse(PROJECT / "app" / "src" / "main" / "AndroidManifest.xml").getroot()
    assert manifest.attrib == {}
    assert manifest.find("uses-sdk") is None


def test_the_plugin_of_android_has_one_exact_version() -> None:
    text = (PROJECT / "build.gradle.kts").read_text(encoding="utf-8")
    assert re.findall(r'id\("com\.android\.application"\) version "8\.\d+\.\d+" apply false', text)
