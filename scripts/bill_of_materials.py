"""Write the packages that heedful needs, as installed: a software bill of materials (CycloneDX, JSON).

python scripts/bill_of_materials.py > bom.json
"""

from __future__ import annotations

import importlib.metadata
import json
import re
import sys
import uuid
from typing import Any

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def normalize(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def needed_packages(root: str, extras: tuple[str, ...] = ()) -> list[importlib.metadata.Distribution]:
    """Return a package and everything that it needs, directly or not, in the order of their names."""
    found: dict[str, importlib.metadata.Distribution] = {}
    waiting = [root]
    while waiting:
        name = normalize(waiting.pop())
        if name in found:
            continue
        try:
            found[name] = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        for requirement in found[name].requires or ():
            optional = "extra ==" in requirement
            wanted = any(f'extra == "{extra}"' in requirement.replace("'", '"') for extra in extras)
            if (match := NAME.match(requirement)) and (not optional or (name == normalize(root) and wanted)):
                waiting.append(match[0])
    return [found[name] for name in sorted(found)]


def describe(package: importlib.metadata.Distribution) -> dict[str, Any]:
    name, version = normalize(package.metadata["Name"]), package.version
    facts: dict[str, Any] = {
        "type": "library",
        "name": name,
        "version": version,
        "purl": f"pkg:pypi/{name}@{version}",
        "bom-ref": f"pkg:pypi/{name}@{version}",
    }
    stated = package.metadata.get("License-Expression") or package.metadata.get("License")
    if stated and len(stated) < 100:
        facts["licenses"] = [{"license": {"name": stated}}]
    return facts


def bill_of_materials(root: str = "heedful", extras: tuple[str, ...] = ()) -> dict[str, Any]:
    packages = [describe(package) for package in needed_packages(root, extras)]
    own = [package for package in packages if package["name"] == normalize(root)]
    serial = uuid.uuid5(uuid.NAMESPACE_URL, " ".join(package["purl"] for package in packages))
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
        "metadata": {"component": {**own[0], "type": "application"}} if own else {},
        "components": [package for package in packages if package not in own],
    }


if __name__ == "__main__":
    json.dump(bill_of_materials(extras=tuple(sys.argv[1:])), sys.stdout, indent=2)
    print()
