"""Kin of the cases in `determinism_cases.py`: what is kept comes back from a library's call, and times out of texts."""

# mypy: ignore-errors
# ruff: noqa

from __future__ import annotations

import collections
import contextlib
import functools
import itertools
import json
import operator
import pprint
import time
from xml.etree.ElementTree import ElementTree, fromstring

import numpy as np
import pandas as pd
from determinism_kin import Em, changing, steady


class Nameless:
    pass


class Keeps(Em):
    """Keeps what it may change."""

    def __init__(self):
        self.rows = [[]]
        self.named = {"a": []}
        self.sums = np.zeros(2)


def appended(kept, word):
    kept.append(word)
    return len(kept)


def merged(into, more):
    into.update(more)
    return into


@contextlib.contextmanager
def lent(kept):
    yield kept


@changing
class HandedByGetitem(Keeps):
    def value(self, t):
        operator.getitem(self.rows, 0).append(t[0])
        return len(self.rows[0])


@changing
class HandedByItemgetter(Keeps):
    def value(self, t):
        operator.itemgetter("a")(self.named).append(t[0])
        return len(self.named["a"])


@changing
class HandedByAttrgetter(Keeps):
    def value(self, t):
        operator.attrgetter("rows")(self).append(t[0])
        return len(self.rows)


@changing
class HandedByReduce(Keeps):
    def value(self, t):
        functools.reduce(operator.getitem, ["a"], self.named).append(t[0])
        return len(self.named["a"])


@changing
class ChangedInReduce(Keeps):
    def value(self, t):
        return len(functools.reduce(lambda rows, word: rows.append(word) or rows, t, self.rows))


@changing
class AddedInAccumulate(Keeps):
    def value(self, t):
        return len(list(itertools.accumulate(t, operator.iadd, initial=self.rows)))


@changing
class SpreadOut(Keeps):
    def value(self, t):
        return appended(**{"kept": self.rows, "word": t[0]})


@changing
class SpreadFromADict(Keeps):
    def value(self, t):
        return appended(**dict(kept=self.rows, word=t[0]))


@changing
class LentToAWith(Keeps):
    def value(self, t):
        with lent(self.rows) as rows:
            rows.append(t[0])
        return len(self.rows)


@changing
class LentByNullcontext(Keeps):
    def value(self, t):
        with contextlib.nullcontext(self.rows) as rows:
            rows.append(t[0])
        return len(self.rows)


@changing
class SlicedRows(Keeps):
    def value(self, t):
        some = self.rows[:]
        some[0].append(t[0])
        return len(self.rows[0])


@changing
class TwiceByTee(Keeps):
    def value(self, t):
        one, other = itertools.tee(self.rows)
        for row in one:
            row.append(t[0])
        return len(self.rows[0])


@changing
class ChainedMaps(Keeps):
    def value(self, t):
        collections.ChainMap({}, self.named)["a"].append(t[0])
        return len(self.named["a"])


@changing
class AddedByPosition(Keeps):
    def value(self, t):
        np.add(self.sums, t[0], self.sums)
        return float(self.sums[0])


@changing
class ClippedByPosition(Keeps):
    def value(self, t):
        np.clip(t, 0, 1, self.sums)
        return float(self.sums[0])


@changing
class Transposed(Keeps):
    def value(self, t):
        across = self.sums.T
        across += 1
        return float(self.sums[0])


@changing
class SeenAtLeastOnce(Keeps):
    def value(self, t):
        seen = np.atleast_1d(self.sums)
        seen += 1
        return float(self.sums[0])


@changing
def tree_parsed(file):
    return [ElementTree().parse(file)]


@changing
def tree_of_a_file(file):
    return [ElementTree(file=file).getroot().text]


@changing
def times_of_texts(word):
    return [pd.to_datetime(["now"])[0]]


@changing
def index_of_today(word):
    return [pd.DatetimeIndex(["today"])[0]]


@changing
def typed_times(word):
    return [pd.Series(["now"], dtype="datetime64[ns]")[0]]


@changing
def array_of_now(word):
    return [np.array(["now"], dtype="datetime64[s]")[0]]


@changing
def cast_to_times(word):
    return [np.array(["now", word]).astype("datetime64[s]")[0]]


@changing
def now_by_default(word):
    return [pd.Timestamp(word or "now")]


@changing
def address_in_json(word):
    return [json.dumps({"a": Nameless()}, default=str)]


@changing
def address_by_per_cent(word):
    return ["%r" % Nameless()]


@changing
def address_by_format(word):
    return ["{}".format(Nameless())]


@changing
def address_by_pprint(word):
    return [pprint.pformat([Nameless()])]


class Counts:
    def __init__(self):
        self.read = 0

    def __getitem__(self, key):
        self.read += 1
        return self.read


@changing
class CountsReads(Em):
    def __init__(self):
        self.counts = Counts()

    def value(self, t):
        return self.counts[t[0]]


class Numbers(dict):
    def __missing__(self, key):
        self[key] = len(self)
        return self[key]


@changing
class NumbersWords(Em):
    def __init__(self):
        self.numbers = Numbers()

    def value(self, t):
        return self.numbers[t[0]]


class Dated:
    def __str__(self):
        return time.strftime("%H")


class ShowsDated(Em):
    def __init__(self):
        self.dated = Dated()


@changing
class ShowsInAFormattedText(ShowsDated):
    def value(self, t):
        return f"{t[0]} at {self.dated}"


@changing
class ShowsByPerCent(ShowsDated):
    def value(self, t):
        return "%s at %s" % (t[0], self.dated)


@changing
class ShowsByStr(ShowsDated):
    def value(self, t):
        return str(self.dated)


@changing
class AddsToAHeldEntry(Keeps):
    def value(self, t):
        numbered = {place: row for place, row in enumerate(self.rows)}
        numbered[0] += [t[0]]
        return len(self.rows[0])


@changing
class AddsToTheValuesOfAFrame(Em):
    def __init__(self):
        self.frame = pd.DataFrame({"n": [0]})

    def value(self, t):
        values = self.frame.values
        values += 1
        return int(self.frame.n[0])


@steady
class CountsInANewDict(Keeps):
    def value(self, t):
        counts = {"a": 0, "rows": []}
        counts["a"] += len(self.rows)
        counts["rows"] += self.rows
        return counts


class Named:
    def __init__(self, name):
        self.name = name

    def __str__(self):
        return self.name


class Steps(tuple):
    def __getitem__(self, place):
        return super().__getitem__(place % len(self))


@steady
class ShowsNames(Em):
    def __init__(self):
        self.named, self.steps = Named("a"), Steps(("a", "b"))

    def value(self, t):
        return f"{self.named}", "%s" % self.named, self.steps[len(t[0])]


@steady
class FoldsIntoANewDict(Em):
    def __init__(self):
        self.tables = [{"a": 1}]

    def value(self, t):
        all_of = functools.reduce(merged, self.tables, {})
        all_of["word"] = t[0]
        return functools.reduce(lambda one, other: {**one, **other}, self.tables, all_of)


@steady
class ReadsWhatIsHanded(Keeps):
    def value(self, t):
        more = np.multiply(self.sums, 2)
        more += self.sums.T
        return operator.itemgetter("a")(self.named), self.rows[:1] + [t[0]], float(more[0])


@steady
class SpreadSettings(Em):
    def __init__(self):
        self.settings = {"sep": ",", "end": "."}

    def value(self, t):
        return self.joined(t[0], **self.settings)

    def joined(self, words, sep, end):
        words += end
        return sep.join(words)


@steady
def words_like_now(word):
    words = np.array(["now", "then"]), pd.Series(["now"]), pd.Series([word]).replace("now", "y")
    return [word.replace("now", "then"), *(each.tolist() for each in words)]


@steady
def texts_of_values(word):
    return ["%s-%d" % (word, 3), "{}-{}".format(word, 1), 7 % len(word), json.dumps([word], default=str)]


@steady
def tree_of_a_text(text):
    return [ElementTree(fromstring(text)).getroot().text, ElementTree(fromstring(text)).find("a")]
