"""What functions of libraries read, change in place, and hand on of what they are given."""

# mypy: ignore-errors
# ruff: noqa

from __future__ import annotations

import array, bz2, collections, copy, heapq, itertools, lzma, random, struct, zlib
import xml.etree.ElementTree as ET

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.json
from determinism_kin import changing, steady

# -- files and the machine ------------------------------------------------------------------------------------------


@changing
def reads_csv(w):
    return pyarrow.csv.read_csv("rates.csv").column("rate").to_pylist()


@changing
def reads_json(w):
    return pyarrow.json.read_json("rates.json").column("rate").to_pylist()


@changing
def reads_feather(w):
    return pyarrow.feather.read_table("rates.feather").column("rate").to_pylist()


@changing
def loads_text(w):
    return [float(np.loadtxt("rates.txt").sum())]


@changing
def reads_by_pattern(w):
    return [len(np.fromregex("rates.txt", "a", [("a", "i4")]))]


@changing
def opens_hdf(w):
    return [len(pd.HDFStore("rates.h5")["rates"])]


@changing
def opens_bz2(w):
    return [bz2.open("rates.bz2").read()]


@changing
def opens_lzma(w):
    with lzma.open("rates.xz") as lines:
        return [line for line in lines]


@changing
def iterates_over_a_file(w):
    return [element.tag for _, element in ET.iterparse("rates.xml")]


@changing
def memory_of_the_process(w):
    return [pa.total_allocated_bytes()]


# -- changed in place -----------------------------------------------------------------------------------------------


class Held:
    """Keeps something of each kind."""

    def __init__(self):
        self.totals, self.other = np.zeros(3), np.zeros((3, 3))
        self.bytes, self.ints = bytearray(8), array.array("i", [1])
        self.frame, self.struct = pd.DataFrame({"a": [2, 1]}), struct.Struct("b")
        self.words, self.lists, self.by_key = ["a", "b"], [[], []], {"a": []}
        self.row = {"n": 0}

    def prepare(self, conf, context):
        self.zlib = zlib.compressobj()


@changing
class AddsOut(Held):
    def __call__(self, x):
        np.add(self.totals, x, out=self.totals)
        return [float(self.totals[0])]


@changing
class ClipsOut(Held):
    def __call__(self, x):
        before = float(self.totals[0])
        x.cumsum(out=self.totals)
        return [before]


@changing
class AddsAt(Held):
    def __call__(self, x):
        np.add.at(self.totals, 0, x)
        return [float(self.totals[0])]


@changing
class CopiesTo(Held):
    def __call__(self, x):
        before = float(self.totals[0])
        np.copyto(self.totals, x)
        return [before]


@changing
class FillsDiagonal(Held):
    def __call__(self, x):
        before = float(self.other.sum())
        np.fill_diagonal(self.other, x)
        return [before]


@changing
class ChangesView(Held):
    def __call__(self, x):
        flat = self.other.reshape(9)
        flat[0] += x
        return [float(self.other.sum())]


@changing
class ChangesRavelled(Held):
    def __call__(self, x):
        flat = np.ravel(self.other)
        flat += x
        return [float(self.other.sum())]


@changing
class SwapsBytes(Held):
    def __call__(self, x):
        self.ints.byteswap()
        return [self.ints[0]]


@changing
class SortsFrame(Held):
    def __call__(self, x):
        before = int(self.frame["a"].iloc[0])
        self.frame.sort_values("a", inplace=True)
        return [before]


@changing
class Packs(Held):
    def __call__(self, x):
        before = self.bytes[0]
        struct.pack_into("b", self.bytes, 0, x)
        return [before]


@changing
class PacksByStruct(Held):
    def __call__(self, x):
        before = self.bytes[0]
        self.struct.pack_into(self.bytes, 0, x)
        return [before]


@changing
class ShufflesBySeed(Held):
    def __call__(self, x):
        random.Random(x).shuffle(self.words)
        return [self.words[0]]


@changing
class Compresses(Held):
    def __call__(self, x):
        return [self.zlib.compress(x)]


# -- handed on ------------------------------------------------------------------------------------------------------


@changing
class Enumerates(Held):
    def __call__(self, x):
        for place, each in enumerate(self.lists):
            each.append(x + place)
        return [len(self.lists[0])]


@changing
class Zips(Held):
    def __call__(self, x):
        for each, value in zip(self.lists, x):
            each.append(value)
        return [len(self.lists[0])]


@changing
class Sorts(Held):
    def __call__(self, x):
        sorted(self.lists, key=len)[0].append(x)
        return [len(self.lists[0])]


@changing
class Smallest(Held):
    def __call__(self, x):
        heapq.nsmallest(1, self.lists)[0].append(x)
        return [len(self.lists[0])]


@changing
class Lists(Held):
    def __call__(self, x):
        for each in list(self.lists):
            each.append(x)
        return [len(self.lists[0])]


@changing
class Chains(Held):
    def __call__(self, x):
        for each in itertools.chain(self.lists, [[]]):
            each.append(x)
        return [len(self.lists[0])]


@changing
class First(Held):
    def __call__(self, x):
        next(iter(self.lists)).append(x)
        return [len(self.lists[0])]


@changing
class ChangesCopy(Held):
    def __call__(self, x):
        row = self.by_key.copy()
        row["a"].append(x)
        return [len(row["a"])]


@changing
class ChangesShallowCopy(Held):
    def __call__(self, x):
        row = copy.copy(self.by_key)
        row["a"].append(x)
        return [len(row["a"])]


@changing
class ChangesNewDict(Held):
    def __call__(self, x):
        row = dict(self.by_key)
        row["a"].append(x)
        return [len(row["a"])]


@changing
class ThroughArguments(Held):
    def put(self, *values):
        values[0].append(values[1])
        return [len(values[0])]

    def __call__(self, x):
        return self.put(self.words, x)


@changing
class ThroughKeywords(Held):
    def put(self, **values):
        values["into"].append(values["x"])
        return [len(values["into"])]

    def __call__(self, x):
        return self.put(into=self.words, x=x)


@changing
class ThroughIter:
    def __call__(self, words):
        return list(set(words).__iter__())


class Words(set):
    pass


@changing
def of_a_users_set(words):
    return [word for word in Words(words)]


# -- fine -----------------------------------------------------------------------------------------------------------


@steady
class Reads(Held):
    def __call__(self, x):
        found = [f"{place}{word}" for place, word in enumerate(self.words)]
        for word, total in zip(self.words, self.totals.tolist()):
            word += "!"
            total += x
            found.append(word + str(total))
        return [*found, *sorted(self.words), next(iter(self.words)), self.other.reshape(9).sum() + x]


@steady
class ChangesItsOwn(Held):
    def __call__(self, x):
        row = self.row.copy()
        row["n"] += x
        more = dict(self.by_key)
        more["a"] = [*more["a"], x]
        deep = copy.deepcopy(self.by_key)
        deep["a"].append(x)
        totals = self.totals.copy()
        np.add(totals, x, out=totals)
        lists = list(self.lists)
        lists.append([x])
        return [row["n"], len(more["a"]), len(deep["a"]), float(totals[0]), len(lists)]


@steady
def changes_what_it_made(x):
    values, text = np.zeros(3), bytearray(4)
    np.copyto(values, x)
    np.add(values, x, out=values)
    struct.pack_into("b", text, 0, 1)
    frame = pd.DataFrame({"a": [x]})
    frame.sort_values("a", inplace=True)
    parts = [[], []]
    for place, part in enumerate(parts):
        part.append(place)
    letters = list("abc")
    random.Random(7).shuffle(letters)
    return [float(values[0]), bytes(text), len(frame), parts, zlib.compress(text), ET.fromstring("<a/>").tag, letters]


@steady
class Counts(Held):
    def count(self, *values, **named):
        return len(values) + len(named)

    def __call__(self, x):
        counter = collections.Counter(self.words)
        counter.update([x])
        return [self.count(x, self.words, words=self.words), counter[x]]
