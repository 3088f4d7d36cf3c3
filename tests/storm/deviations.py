"""Where we differ from Storm on purpose: each case, why, and what happens here (docs/differences.md)."""

from __future__ import annotations

from typing import Any, NamedTuple

from .cases import Recorded
from .compare import rows


class Deviation(NamedTuple):
    """``storm`` and ``ours``: the error's phase, or what the sink ``out`` got; None: whatever it is, no error.

    ``says``: a part of our error's text. ``asked``: of a case without that sink, what each DRPC request got."""

    reason: str
    storm: Any
    ours: Any
    says: str = ""
    asked: bool = False


EMPTY = "S14: min and max of a partition without tuples emit nothing (Storm: null, and the next reader throws)"

INIT = (
    "section 22: what an Aggregator emits in init counts, with the key of its own group (Storm throws, "
    "other than in an aggregate of the whole batch)"
)
SELF = "section 22: a Stream object merged with itself gives its tuples twice (Storm: IndexOutOfBounds)"

TYPES = "section 22: of more join types than streams the first count (Storm: waits for more, so no output)"
FIELDS = "multiReduce checks its input fields at definition (Storm: NullPointerException when it runs)"
FIELDLESS = "a Sum without an input field is refused at definition (Storm: IndexOutOfBounds when it runs)"
SPOUT = "section 25: a FailedException in emitBatch replays the batch (Storm: it is lost or waits)"

WINDOW = "S15: the tuples of a replayed batch enter a window once (Storm: again)"

DEVIATIONS: dict[str, Deviation] = {
    "sliding_window_replay_batch": Deviation(
        WINDOW,
        [[1, ["[1|2]"]], [2, ["[3|4|5|3]"]], [2, ["[5|3|4|5]"]]]
        + [[4, [window]] for window in ("[4|5|6|7]", "[6|7|8|9]", "[8|9|10|11]")]
        + [[5, ["[10|11|12|13]"]]],
        [[1, ["[1|2]"]], [2, ["[1|2|3|4]"]]]
        + [[4, [window]] for window in ("[3|4|5|6]", "[5|6|7|8]", "[7|8|9|10]", "[9|10|11|12]")],
    ),
    "tumbling_window_replay_batch": Deviation(
        WINDOW,
        [[2, ["[4|5|3]"]], [4, ["[4|5|6]"]], [4, ["[7|8|9]"]], [4, ["[10|11|12]"]]],
        [[2, ["[1|2|3]"]], [4, ["[4|5|6]"]], [4, ["[7|8|9]"]], [4, ["[10|11|12]"]]],
    ),
    "tumbling_window_replay_memory": Deviation(
        WINDOW,
        [[2, ["[1|2|3]"]], [4, ["[6|7|8]"]], [4, ["[9|10|11]"]]],
        [[2, ["[1|2|3]"]], [4, ["[4|5|6]"]], [4, ["[7|8|9]"]], [4, ["[10|11|12]"]]],
    ),
    "minBy_empty_batch": Deviation(EMPTY, "run", [[1, ["a", 3]], [3, ["b", 1]]]),
    "maxBy_empty_batch": Deviation(EMPTY, "run", [[1, ["a", 3]], [3, ["b", 1]]]),
    "partition_aggregate_init_emits": Deviation(
        INIT, "run", [[1, ["init"]], [1, [5]], [2, ["init"]], [2, [0]], [3, ["init"]], [3, [7]]]
    ),
    "group_aggregate_init_emits": Deviation(
        INIT,
        "run",
        [[1, [key, n]] for key in (1, 1.0, True, "1", None) for n in ("init", 1)]
        + [[3, [1, n]] for n in ("init", 2)]
        + [[3, [key, n]] for key in (1.0, 2, None, False, 0) for n in ("init", 1)],
    ),
    "made_minBy_allnull": Deviation(EMPTY, "run", []),
    "made_mr_unknown": Deviation(FIELDS, "run", "build", "no field 'zz'"),
    "made_agg_sum_no_fields": Deviation(FIELDLESS, "run", "build", "Sum reads its first input field"),
    "made_spout_throws": Deviation(
        SPOUT,
        "run",
        [[1, ["a", 2]], [1, ["b", 1]], [3, ["a", 3]], [3, ["c", 1]], [4, ["a", 4]], [4, ["b", 2]]],
    ),
    "made_selfjoin_COMPACT": Deviation(
        "section 22: a Stream object joined with itself gives the join (Storm: nothing)",
        [],
        [[1, ["x", v, w]] for v in (1, 3) for w in (1, 3)]
        + [[1, ["y", 2, 2]], [1, [None, 4, 4]]]
        + [[3, [key, v, v]] for key, v in (("z", 5), (1, 6), (1.0, 7), (True, 8))],
    ),
    "made_join_COMPACT_INNER_OUTER_INNER": Deviation(
        TYPES,
        [],
        [[1, ["x", v, w]] for v in (1, 3) for w in (10, 11)]
        + [[1, ["y", 2, None]], [1, [None, 4, 30]], [3, ["z", 5, 1]]]
        + [[3, [1, 6, 60]], [3, [1.0, 7, None]], [3, [True, 8, 80]]],
    ),
    "bad_merge_out_arity": Deviation(
        SELF, "run", [[1, [v]] for v in (1, 2, 1)] * 2 + [[3, [v]] for v in (2, None, 1, 3)] * 2
    ),
}
_LAST = "S21: the end of the stream's line answers (Storm: the node that was created last)"
DEVIATIONS |= {
    "drpc_last_step_is_a_filter_branch": Deviation(
        _LAST,
        [[["a b a", "a"], ["a b a", "a"]], []],
        [[["a b a", "a", 4], ["a b a", "b", 2], ["a b a", "a", 4]], [["c", "c", 1]]],
        asked=True,
    ),
    "drpc_last_step_is_a_branch_of_the_source": Deviation(
        _LAST, [[["a b", 3]]], [[["a b", "a", 4], ["a b", "b", 2]]], asked=True
    ),
}
# Storm drops the values behind the last field. Here the batch fails.
_FULL = (
    "bad_emit_wrong_arity",
    "made_each_identity_a_b_o",
    "made_map_identity_o",
    "made_map_reverse_o",
    "made_map_upper_o",
    "made_map_constant_o",
    "made_agg_multi_one_out",
    "made_static_TupleCollectionGet_None_r_2",
    "made_static_TupleCollectionGet_r_2",
    "made_static_TupleCollectionGet_v_r_2",
    "made_pp_log_o_log_None",
    *(f"made_pp_log_o_log_{where}" for where in ("commit", "beginCommit", "update")),
    *(
        f"made_pp_put_o_{kind}_{where}"
        for kind in ("opaque", "transactional", "nontransactional", "memory")
        for where in ("None", "commit", "beginCommit", "update")
    ),
)
_NARROW = Deviation("fewer output fields than a join makes values are an error", None, "build", "the join makes ")
DEVIATIONS |= {f"made_join_{mode}_outminus1": _NARROW for mode in ("COMPACT", "PRESERVE")}
_UNEVEN = "join fields of different number are an error (Storm: nothing meets, or the worker crashes)"
DEVIATIONS |= {
    "bad_join_field_counts": Deviation(_UNEVEN, [], "build", "by position"),
    "made_join_uneven_keys_COMPACT": Deviation(_UNEVEN, "run", "build", "by position"),
    "made_join_uneven_keys_PRESERVE": Deviation(_UNEVEN, None, "build", "by position"),
}
_MORE = Deviation("more values emitted than there are fields are an error", None, "run", "for the 1 fields")
DEVIATIONS |= dict.fromkeys(_FULL, _MORE)


def check(recorded: Recorded, ours: dict[str, Any]) -> None:
    """Asserts that Storm still does what the table says, and we too."""
    deviation = DEVIATIONS[recorded.name]
    if deviation.storm is None:
        assert recorded.result["error"] is None, deviation.reason
    else:
        assert _seen(recorded.result, deviation.asked) == _rows(deviation.storm, deviation.asked), deviation.reason
    assert _seen(ours, deviation.asked) == _rows(deviation.ours, deviation.asked), deviation.reason
    assert deviation.says in str(ours["error"] and ours["error"]["text"]), deviation.reason


def _seen(result: dict[str, Any], asked: bool) -> Any:
    if result["error"]:
        return result["error"]["phase"]
    return [rows(answer) for _, _, answer in result["drpc"]] if asked else rows(result["outputs"]["out"])


def _rows(expected: Any, asked: bool) -> Any:
    if isinstance(expected, str):
        return expected
    return list(map(rows, expected)) if asked else rows(expected)
