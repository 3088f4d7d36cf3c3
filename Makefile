# Each target makes .venv and installs first when that is not done yet (scripts/setup.sh; a stamp keeps re-runs quick).
.DEFAULT_GOAL := help
.PHONY: help setup services run cluster check test test-all floors spark-matrix faults host-faults soak cut-overs simulate planted lint
.PHONY: bench docs clean

help:            ## this list
	@grep -E '^[a-z-]+: .*##' Makefile | sed -E 's/: .*##/\t/' | expand -t 14

setup:           ## python and java checked, .venv made, everything installed
	@sh scripts/setup.sh

services: setup  ## mariadb, mysql, postgresql, redis, kafka for the tests, fetched when missing (root on Debian; otherwise it says how)
	@sh scripts/services.sh

run: setup       ## the main job: 26,115 weather readings into SQLite on Spark, twice; the second run changes nothing
	@sh scripts/run.sh

cluster: services ## the main job from spark-submit on six hosts with HDFS and MariaDB; two of the hosts are killed meanwhile (root)
	@.venv/bin/python -m examples.weather_cluster </dev/null

check: setup     ## lint, types, units, SQLite, LocalCluster: no servers, no root, no Spark; at most 3 minutes
	@sh scripts/test.sh check

test: services   ## lint, types, and a test of every promise on every store and on Spark; examples, documentation snippets
	@sh scripts/test.sh test

test-all: services ## every case of every test: all states at all steps on all stores, long chains of crashes
	@sh scripts/test.sh all

floors: services ## the lowest versions that setup.cfg allows, and smoke tests with them on both clusters; part of make test-all
	@sh scripts/floors.sh

spark-matrix: setup ## every version of Spark from 3.5 on, each with its Python and Java, and docs/compatibility.md
	@.venv/bin/python scripts/spark_matrix.py </dev/null

faults: services ## random faults over every state and store, as many as you like: make faults SEED=7 ROUNDS=100
	@PYTHONPATH=tests .venv/bin/python -m faults.campaign --seed $(or $(SEED),1) --rounds $(or $(ROUNDS),20) $(if $(STORES),--stores $(STORES)) $(if $(PROCESSES),--processes $(PROCESSES)) $(if $(RECORDS),--records $(RECORDS)) </dev/null

host-faults: services ## hosts killed, cut off, slowed, stopped, as many as you like: make host-faults SEED=1 ROUNDS=10 (root)
	@PYTHONPATH=tests:tests/kafka .venv/bin/python -m hosts.rounds --seed $(or $(SEED),1) --stories $(or $(ROUNDS),10) </dev/null

soak: services ## the chain from sensors to MariaDB for an hour, a kill a minute: what grows? make soak MINUTES=60 SPARE=gateway
	@PYTHONPATH=tests .venv/bin/python -m faults.soak --minutes $(or $(MINUTES),60) --seed $(or $(SEED),1) --spare $(or $(SPARE),driver) </dev/null

cut-overs: services ## real Storm killed at random moments and moved here: make cut-overs SEED=7 ROUNDS=20; once with many: KEYS=1000000
	@PYTHONHASHSEED=0 PYTHONPATH=tests/extras/moving .venv/bin/python -m $(if $(KEYS),large_cut_over $(KEYS),cut_over --seed $(or $(SEED),1) --rounds $(or $(ROUNDS),20) $(if $(REVERSE),--reverse)) </dev/null

simulate: setup  ## drawn schedules of the protocol over simulated stores, as long as you like: make simulate SEED=7 SECONDS=3600
	@PYTHONPATH=tests .venv/bin/python -m simulation.random --seed $(or $(SEED),1) --seconds $(or $(SECONDS),60) </dev/null

planted: services ## bugs planted into the protocol, and after how many schedules each is found: docs/simulation.md
	@PYTHONPATH=tests .venv/bin/python -m simulation.planted </dev/null

lint: setup      ## ruff and mypy
	@sh scripts/test.sh lint

bench: services  ## benchmarks, side by side with hand-written Spark: one JSON line per figure and a table
	@sh scripts/bench.sh

docs: setup      ## the site of docs/, searchable, every link checked: build/site/index.html
	@sh scripts/docs.sh

clean:           ## what make run and make test leave in build/ and the caches; .venv stays
	rm -rf build .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info
