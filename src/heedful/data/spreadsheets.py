"""Read the first sheet of an Excel workbook (.xlsx) as rows of texts, with the standard library alone."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO
from xml.etree import ElementTree

from heedful.data.cache import describe_os_error
from heedful.errors import UserError

MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
STRICT = "{http://purl.oclc.org/ooxml/spreadsheetml/main}"
RELATION = re.compile(r"\{.*/officeDocument/(2006/)?relationships\}id")
ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")
REFERENCE = re.compile(r"([A-Z]+)\d+")


def read_spreadsheet(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield (row number, cells) of the first sheet; empty rows and empty cells at the end are left out.

    A number is the text that Excel stores for it, a truth value is true or false, an error is empty.
    """
    try:
        with zipfile.ZipFile(path) as book:
            strings = read_shared_strings(book)
            with book.open(find_first_sheet(book)) as sheet:
                yield from read_rows(sheet, strings)
    except (
        zipfile.BadZipFile,
        KeyError,
        ElementTree.ParseError,
        StopIteration,
        IndexError,
        ValueError,
    ) as error:
        raise UserError(
            f"{path} row 1: is not an Excel workbook, or is damaged ({error}); save it as .xlsx or .csv"
        ) from None
    except OSError as error:
        raise UserError(f"{path}: {describe_os_error(error)}") from None


def find_first_sheet(book: zipfile.ZipFile) -> str:
    workbook = ElementTree.fromstring(book.read("xl/workbook.xml"))
    sheet = next(element for element in workbook.iter() if element.tag.endswith("}sheet"))
    number = next(value for name, value in sheet.attrib.items() if RELATION.fullmatch(name))
    relations = ElementTree.fromstring(book.read("xl/_rels/workbook.xml.rels"))
    target = next(relation.attrib["Target"] for relation in relations if relation.attrib["Id"] == number)
    return target.lstrip("/") if target.startswith("/") else str(PurePosixPath("xl") / target)


def read_shared_strings(book: zipfile.ZipFile) -> list[str]:
    if "xl/sharedStrings.xml" not in book.namelist():
        return []
    with book.open("xl/sharedStrings.xml") as file:
        return [join_text(item) for item in iterate(file, "si")]


def iterate(file: IO[bytes], name: str) -> Iterator[ElementTree.Element]:
    """Yield the elements of a name as they are read; each is forgotten afterwards."""
    parents: list[ElementTree.Element] = []
    for event, element in ElementTree.iterparse(file, events=("start", "end")):
        if event == "start":
            parents.append(element)
            continue
        parents.pop()
        if element.tag in (MAIN + name, STRICT + name):
            yield element
            element.clear()
            if parents:
                parents[-1].remove(element)


def join_text(element: ElementTree.Element) -> str:
    """Join the runs of a rich text, without the phonetic hints of Japanese."""
    parts = [
        child.text if child.tag.endswith("}t") else join_text(child)
        for child in element
        if child.tag.endswith(("}t", "}r", "}is"))
    ]
    return ESCAPED.sub(lambda code: chr(int(code[1], 16)), "".join(part or "" for part in parts))


def read_rows(file: IO[bytes], strings: list[str]) -> Iterator[tuple[int, list[str]]]:
    for count, row in enumerate(iterate(file, "row"), start=1):
        cells: list[str] = []
        for cell in row:
            column = find_column(cell.get("r"), len(cells))
            cells += [""] * (column + 1 - len(cells))
            cells[column] = read_cell(cell, strings)
        while cells and not cells[-1]:
            cells.pop()
        if cells:
            yield int(row.get("r") or count), cells


def find_column(reference: str | None, following: int) -> int:
    """Return the place of a cell from its reference, such as B7; without one it follows the last cell."""
    match = REFERENCE.fullmatch(reference or "")
    if match is None:
        return following
    column = 0
    for letter in match[1]:
        column = 26 * column + ord(letter) - ord("A") + 1
    return column - 1


def read_cell(cell: ElementTree.Element, strings: list[str]) -> str:
    kind = cell.get("t", "n")
    if kind == "inlineStr":
        return join_text(cell)
    value = next((child.text or "" for child in cell if child.tag.endswith("}v")), "")
    if kind == "s":
        return strings[int(value)]
    if kind == "b":
        return "true" if value == "1" else "false"
    return "" if kind == "e" else value
