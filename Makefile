# Everything sets itself up in .venv/ and target/. `make help` lists the targets.
# ARGS='...' is passed on to the program that a target runs.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CARGO ?= cargo
ARGS ?=
PREFIX ?= /usr/local
LIBDIR ?= lib
DESTDIR ?=

export PYTHONUTF8 = 1
# The scripts look for what was built where it is built, whatever the user has set.
export CARGO_TARGET_DIR := $(CURDIR)/target

.PHONY: help demo demo-cpp test test-rust test-python test-languages polyglot install header leak-matrix proof \
    bench soak check clean

help:
	@echo "demo         overload a chatbot's database: ungated, with a semaphore, with tidegate"
	@echo "demo-cpp     the same behind a backend in C++, on PostgreSQL"
	@echo "test         all tests"
	@echo "polyglot     the tests of the other languages alone; ARGS='c' for some of them"
	@echo "install      the C and C++ library, in PREFIX (/usr/local)"
	@echo "header       include/tidegate.h and the list of symbols, from bindings/c"
	@echo "check        format, lints, types, docs"
	@echo "leak-matrix  every hook against every fault, in docs/leak-matrix.md"
	@echo "proof        the simulator against queueing theory and the article, at full power, in docs/proof.md"
	@echo "bench        the figures, as ratios to their peers, in target/bench.json"
	@echo "soak         long storms, models and sanitizers"

# --- set-up ------------------------------------------------------------------------------------

RUST_SOURCES := Cargo.toml Cargo.lock $(shell find src bindings/python -name '*.rs' -o -name Cargo.toml)

$(VENV)/.pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo "tidegate needs Python 3.11 or later; say which with PYTHON=..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet 'pip>=25.1'
	@touch $@

$(VENV)/.tools: $(VENV)/.pip pyproject.toml
	$(BIN)/python -m pip install --quiet --group test
	@touch $@

# The package itself, editable: the Python half is used where it stands, the native half is built.
$(VENV)/.package: $(VENV)/.tools $(RUST_SOURCES)
	$(BIN)/maturin develop --quiet --release --extras cli,demo
	@touch $@

$(VENV)/.check: $(VENV)/.pip pyproject.toml
	$(BIN)/python -m pip install --quiet --group check
	@touch $@

# --- what people run ---------------------------------------------------------------------------

demo: $(VENV)/.package
	$(BIN)/tidegate demo $(ARGS)

demo-cpp: $(VENV)/.package
	scripts/demo_cpp.sh $(ARGS)

test: test-rust test-python test-languages

test-rust:
	$(CARGO) test --locked -p tidegate --features capacity,sim
	$(CARGO) test --locked -p tidegate-c
	RUSTFLAGS="--cfg tidegate_loom" $(CARGO) test --locked --target-dir target/loom --release --test loom

test-python: $(VENV)/.package
	$(BIN)/python -m pytest $(ARGS)

# Without ARGS, which in `make test` are pytest's.
test-languages:
	PYTHON=$(PYTHON) scripts/polyglot.sh

polyglot:
	PYTHON=$(PYTHON) scripts/polyglot.sh $(ARGS)

install:
	PREFIX='$(PREFIX)' LIBDIR='$(LIBDIR)' DESTDIR='$(DESTDIR)' scripts/install.sh

header:
	scripts/header.sh

leak-matrix: $(VENV)/.package
	$(BIN)/python scripts/leak_matrix.py $(ARGS)

proof: $(VENV)/.package
	$(BIN)/python scripts/proof.py $(ARGS)

bench: $(VENV)/.package
	TIDEGATE_BENCH_OUT=$(CURDIR)/target/bench-rust.json scripts/bench_libraries.sh $(CARGO) bench --locked -p tidegate-benches
	scripts/bench_languages.sh
	$(BIN)/python benches/python_ratios.py --merge target/bench-rust.json target/bench-languages/*.json --out target/bench.json

soak: $(VENV)/.package
	PYTHON=$(CURDIR)/$(BIN)/python scripts/soak.sh

check: $(VENV)/.package $(VENV)/.check
	scripts/check.sh

clean:
	rm -rf $(VENV) target
