"""Java topologies, run on real Storm and, translated, here: both must give the same.

A topology is a class in ``java``; its package is ``topologies``. The harness (``storm/Harness.java``; here ``ours.py``)
calls its public static method that returns a StormTopology (a LocalDRPC and a Config among the parameters are given),
or else its ``main``, whose StormSubmitter.submitTopology it takes. ``java/Recorder.java`` is translated with each of
them: a state that keeps the rows of each committed batch. Compared are those rows by txid, the lines printed or logged
(from INFO on, without the time), and the answers of DRPC. Comments at the head of a file say how it runs:

``// batches: 4``
    Runs to this txid. There is no other batch, on either side.
``// conf: {"totals": true}``
    Settings for the topology, as JSON.
``// asks: words "the cow"``
    A DRPC function and its arguments (JSON), asked behind the last batch. Any number of lines.
``// files: ["notes/*.txt"]``
    The lines of these files belong to the result. ``$FOLDER`` in ``conf`` is where they are.
``// sql: create table ...``
    A statement for ``stored.sqlite`` in that folder, before the run.
``// left: 3``
    So many statements are not translated: topologies of Storm's core, which the harness starts as little.
``// unordered: rows printed``
    Storm gives no order to the rows of a batch, or to the lines: they are sorted before they are compared.

``python -m tests.porting_tool.record [NAME...]`` runs them on Storm and writes ``expected``.
"""
