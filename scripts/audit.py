"""Compare the installed packages that heedful needs with the advisories of the package index.

The JSON interface of the index names the known vulnerabilities of each version, which pip-audit reads too.
Where it cannot be reached, the audit is skipped, and says so loudly; a known vulnerability is status 1.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from bill_of_materials import needed_packages, normalize

INDEX = os.environ.get("HEEDFUL_AUDIT_INDEX", "https://pypi.org")
SECONDS = 4.0
MOST_BYTES = 32 * 2**20
ACCEPTED: dict[str, str] = {}
"""Advisories that do not concern heedful, by their identifier, each with the reason."""


class UnreachableError(Exception):
    """The index does not answer."""


def find_advisories(name: str, version: str) -> list[dict[str, Any]]:
    """Return the advisories of one version; none where the index does not know it (a local build)."""
    url = f"{INDEX}/pypi/{name}/{version.partition('+')[0]}/json"
    try:
        with urllib.request.urlopen(url, timeout=SECONDS) as answer:
            facts = json.loads(answer.read(MOST_BYTES))
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return []
        raise UnreachableError(str(error)) from None
    except (OSError, ValueError) as error:
        raise UnreachableError(str(error)) from None
    found = facts.get("vulnerabilities") if isinstance(facts, dict) else None
    if found is None:
        raise UnreachableError("the answer names no advisories")
    return [one for one in found if not one.get("withdrawn") and one.get("id") not in ACCEPTED]


def main() -> int:
    packages = [(normalize(one.metadata["Name"]), one.version) for one in needed_packages("heedful")]
    packages = [(name, version) for name, version in packages if name != "heedful"]
    try:
        find_advisories(*packages[0])  # one question tells whether there is an index
        with ThreadPoolExecutor(16) as pool:
            advisories = list(pool.map(lambda one: find_advisories(*one), packages))
    except UnreachableError as error:
        print(f"audit: SKIPPED: {INDEX} cannot be asked for advisories ({error})", file=sys.stderr)
        return 0
    known = 0
    for (name, version), found in zip(packages, advisories, strict=True):
        for one in found:
            known += 1
            fixed = ", ".join(one.get("fixed_in") or ()) or "no version"
            print(f"audit: {name} {version}: {one.get('id')}: mended in {fixed}", file=sys.stderr)
    print(f"audit: {len(packages)} packages, {known} known vulnerabilities")
    return 1 if known else 0


if __name__ == "__main__":
    sys.exit(main())
