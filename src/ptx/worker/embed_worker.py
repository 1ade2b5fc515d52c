#!/usr/bin/env python3
"""Writes the worker's templates as C++: embed_worker.py OUTPUT INPUT.ptx.in..., for worker_text.cc.

A template is PTX text with these lines:
  #text NAME              begins a text, which lasts until the next one; the text called worker is what is written
  #use NAME               stands for that text
  #if FLAG, #if !FLAG, #else, #end    FLAG: a member of WorkerShape
  #names %REGISTER %NAME...    names of what the register holds at times
and these names:
  %NAME                   a register by one of its names, a register that a .reg declares, or one of SPECIAL
  $NAME                   a label of the templates
  [args.FIELD]            a field of LaunchArgs, in the kernel's parameters
  shared.FIELD            the address of one of the SharedWords
  DeviceSlot.FIELD, HostSlot.FIELD, SharedWords.FIELD    its offset
  kCONSTANT               a constant of C++
Fields, flags and constants become C++ names, so the compiler knows them or refuses them, with the template's line.
Registers, labels and texts are checked here: each must be declared and used, and what is read under a name must have
been written under it."""

import collections
import itertools
import pathlib
import re
import sys

from register_values import mixed_values

NUMBERED = re.compile(r"%[rd]\d+")  # registers that have nothing but names
PREFIX = "gpuslice_"  # of registers and labels, in the result
SPECIAL = {"ctaid", "globaltimer", "globaltimer_lo", "laneid", "ntid", "smid", "tid"}
# The passes use these: the names of kernel.h.
FOR_PASSES = {"%someone", "$crossing", "$plain_task_end", "$task_end"}

DIRECTIVE = re.compile(r"#(\w+)(?: (!?)(\w+))?")
NAME = re.compile(
    r"(?P<register>%\w+)|(?P<label>\$\w+)|\[args\.(?P<argument>[\w.]+)\]|(?<!\.)\bshared\.(?P<word>[a-z]\w*)"
    r"|\b(?P<struct>DeviceSlot|HostSlot|SharedWords)\.(?P<field>\w+)|\b(?P<constant>k[A-Z]\w*)"
)
Line = collections.namedtuple("Line", "place text")  # place: the file and the number of the line


class Wrong(Exception):
    def __init__(self, place, what):
        super().__init__(f"{place[0]}:{place[1]}: {what}")


def read(files):
    """The lines of each text, by its name. files: pairs of a name and the content."""
    texts = {}
    lines = None
    for name, content in files:
        for number, text in enumerate(content.splitlines(), 1):
            line = Line((name, number), text.split("//")[0].rstrip())
            if line.text.startswith("#text "):
                lines = texts.setdefault(line.text[6:], [])
                if lines:
                    raise Wrong(line.place, f"a second text called {line.text[6:]}")
            elif line.text and lines is None:
                raise Wrong(line.place, "it belongs to no text")
            elif line.text:
                lines.append(line)
        lines = None
    return texts


def whole(texts, name, used, inside=()):
    """The lines of a text, with those of the texts that it uses. used: gets the names of all of them."""
    used.add(name)
    for line in texts[name]:
        if not line.text.startswith("#use "):
            yield line
            continue
        inner = line.text[5:]
        if inner not in texts:
            raise Wrong(line.place, f"no text is called {inner}")
        if inner in (*inside, name):
            raise Wrong(line.place, f"{inner} uses itself")
        yield from whole(texts, inner, used, (*inside, name))


def registers_of(lines):
    """The register that each name stands for, and the lines without #names."""
    registers, rest = {}, []
    for line in lines:
        words = line.text.split()
        if words[0] == "#names":
            for name in words[2:]:
                if words[1] not in registers or name in registers:
                    raise Wrong(line.place, f"{name} is declared twice, or {words[1]} is not")
                registers[name] = words[1]
            continue
        rest.append(line)
        if words[0] == ".reg":
            for name, count in re.findall(r"(%\w+)(?:<(\d+)>)?", line.text):
                registers |= {name + str(i): name + str(i) for i in range(int(count))} if count else {name: name}
    return registers, rest


def check_names(lines, registers):
    """Each register and each label is declared and used. A register that has several names is used by its
    names."""
    declared, used = {name: lines[0].place for name in registers}, {}
    for line in lines:
        label = re.fullmatch(r"(\$\w+):", line.text)
        if label:
            declared[label.group(1)] = line.place
        elif not line.text.lstrip().startswith(".reg "):
            used |= {name: line.place for name in re.findall(r"[%$]\w+", line.text)}
    for name in SPECIAL:
        used.pop("%" + name, None)
    for name, place in used.items():
        if name not in declared or NUMBERED.fullmatch(name):
            raise Wrong(place, f"{name} is not declared")
    used |= {registers[name]: place for name, place in used.items() if name in registers}
    for name, place in declared.items():
        if name not in used and name not in FOR_PASSES:
            raise Wrong(place, f"nothing uses {name}")


def pieces(text, registers):
    """What a line consists of, as functions of worker_text.cc and their arguments; plain text as it is."""
    plain, at = "", 0
    for found in NAME.finditer(text):
        plain += text[at : found.start()]
        at = found.end()
        name = found.group()
        if found["register"] or found["label"]:
            own = found["label"] or name[1:] not in SPECIAL
            name = registers.get(name, name)
            plain += name[0] + (PREFIX if own else "") + name[1:]
            continue
        if plain:
            yield "text", plain
        plain = ""
        if found["argument"]:
            yield "argument", f"offsetof(LaunchArgs, {found['argument']})"
        elif found["word"]:
            yield "shared_word", f"offsetof(SharedWords, {found['word']})"
        elif found["field"]:
            yield "number", f"offsetof({found['struct']}, {found['field']})"
        else:
            yield "number", name
    yield "text", plain + text[at:] + "\n"


def elements(lines, registers):
    """What the lines consist of: place, function and argument."""
    depth = 0
    for line in lines:
        directive = DIRECTIVE.fullmatch(line.text)
        if not directive:
            if line.text.startswith("#"):
                raise Wrong(line.place, f"not understood: {line.text}")
            yield from ((line.place, *piece) for piece in pieces(line.text, registers))
            continue
        word, inverted, flag = directive.groups()
        depth += {"if": 1, "end": -1}.get(word, 0)
        if word not in ("if", "else", "end") or (word == "if") != bool(flag) or depth < (word == "else"):
            raise Wrong(line.place, f"not understood here: {line.text}")
        if flag:
            yield line.place, "unless" if inverted else "when", f"&WorkerShape::{flag}"
        else:
            yield line.place, "otherwise" if word == "else" else "end", ""
    if depth:
        raise Wrong(lines[-1].place, "an #if without its #end")


def joined(parts):
    """The same with neighbouring text in one, quoted."""
    for is_text, group in itertools.groupby(parts, lambda part: part[1] == "text"):
        same = list(group)
        if is_text:
            yield same[0][0], "text", 'R"(' + "".join(part[2] for part in same) + ')"'
        else:
            yield from same


def embed(files):
    """The C++ text for files, which are pairs of a name and the content."""
    texts = read(files)
    if "worker" not in texts:
        raise Wrong((files[0][0], 1), "no text is called worker")
    used = set()
    lines = list(whole(texts, "worker", used))
    for name in texts:
        if name not in used:
            raise Wrong(texts[name][0].place if texts[name] else (files[0][0], 1), f"nothing uses the text {name}")
    registers, lines = registers_of(lines)
    check_names(lines, registers)
    parts = list(elements(lines, registers))
    for place, name, other in mixed_values(lines, registers):
        raise Wrong(place, f"{name} may have been overwritten as {other}")
    out = "constexpr Fragment kWorkerFragments[] = {\n"
    for (file, number), function, argument in joined(parts):
        out += f'#line {number} "{file}"\n{function}({argument}),\n'
    return out + "};\n"


def main():
    output, *inputs = sys.argv[1:]
    try:
        text = embed([(path, pathlib.Path(path).read_text(encoding="utf-8")) for path in inputs])
    except Wrong as wrong:
        sys.exit(str(wrong))
    pathlib.Path(output).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
