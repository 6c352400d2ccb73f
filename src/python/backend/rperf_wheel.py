"""Builds the wheel of the package perf: a backend for pip (PEP 517) without dependencies on Python packages.

Cargo's profile is release by default; to choose another: pip install --config-settings profile=dev ./src/python
"""

import base64
import hashlib
import json
import os
import platform
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# The oldest version of Python that the stable ABI in use supports, as in Cargo.toml (abi3-py39).
PYTHON = "39"


def _metadata():
    """The package in Cargo's metadata, and the target directory."""
    command = ["cargo", "metadata", "--no-deps", "--format-version", "1", "--manifest-path", str(ROOT / "Cargo.toml")]
    try:
        output = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    except FileNotFoundError:
        sys.exit("error: cargo is not in PATH\nhint: the package perf is compiled by Rust's Cargo")
    metadata = json.loads(output)
    package = next(package for package in metadata["packages"] if package["name"] == "rperf-python")
    return package, Path(metadata["target_directory"])


def _metadata_file(package):
    """The content of METADATA."""
    return (
        "Metadata-Version: 2.1\n"
        "Name: rperf-python\n"
        f"Version: {package['version']}\n"
        "Summary: Recordings and live events of Linux perf: the module perf, by rperf\n"
        f"License: {package['license']}\n"
        f"Requires-Python: >=3.{PYTHON[1:]}\n"
        "Provides-Extra: pandas\n"
        "Requires-Dist: pandas; extra == 'pandas'\n"
    )


def _tag():
    return f"cp{PYTHON}-abi3-linux_{platform.machine()}"


def _compile(target, profile):
    """Compile the native part and return its path."""
    command = ["cargo", "build", "--package", "rperf-python", "--profile", profile]
    subprocess.run(command, check=True, cwd=ROOT)
    # Cargo's folder of the profile dev is named debug.
    return target / {"dev": "debug"}.get(profile, profile) / "libperf.so"


def _write(archive, record_lines, name, content):
    """Adds a file to the archive, and its line to the lines of RECORD."""
    entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    entry.external_attr = (0o755 if name.endswith(".so") else 0o644) << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(entry, content)
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    record_lines.append(f"{name},sha256={digest},{len(content)}")


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Compile the package and write its wheel; returns the name of the file."""
    profile = (config_settings or {}).get("profile", "release")
    package, target = _metadata()
    library = _compile(target, profile)
    info = f"rperf_python-{package['version']}.dist-info"
    wheel = f"rperf_python-{package['version']}-{_tag()}.whl"
    record_lines = []
    with zipfile.ZipFile(os.path.join(wheel_directory, wheel), "w") as archive:
        for source in sorted((ROOT / "perf").iterdir()):
            if source.suffix in (".py", ".pyi", ".typed") or source.name == "py.typed":
                _write(archive, record_lines, f"perf/{source.name}", source.read_bytes())
        _write(archive, record_lines, "perf/_perf.abi3.so", library.read_bytes())
        _write(archive, record_lines, f"{info}/METADATA", _metadata_file(package).encode())
        wheel_file = f"Wheel-Version: 1.0\nGenerator: rperf\nRoot-Is-Purelib: false\nTag: {_tag()}\n"
        _write(archive, record_lines, f"{info}/WHEEL", wheel_file.encode())
        # RECORD lists itself without a digest.
        record_file = "\n".join([*record_lines, f"{info}/RECORD,,", ""])
        _write(archive, record_lines, f"{info}/RECORD", record_file.encode())
    return wheel


def build_sdist(sdist_directory, config_settings=None):
    """Exits with an error: the package needs the other crates of rperf's source tree."""
    sys.exit("error: there is no source package of rperf-python alone\nhint: pip install ./src/python in rperf's source tree")
