# SPDX-License-Identifier: BSD-3-Clause
# From a bare checkout, with Python 3.10+, a C++ compiler and make:
#   make test                                            what is quick, on torch 2.13.0, in .venv
#   make test-slow                                       the rest: projects built, checks, programs
#   make test TORCH=torch==2.14.1 VENV=.venv-214         the same on another torch
#   make demo                                            train a small model with the operators
#   make upstream                                        all of PyTorch's derivatives, out of tree
#   make ported                                          a library of others, with its own tests
#   make fuzz                                            100,000 specs for the code generator
#   make fuzz-expressions                                50,000 expressions, and 1,000 that are built
#   make fuzz-operators                                  10,000 made-up operators against ATen's
#   make mutants                                         500 changes of the code generator
#   make cuda-mutants                                    60 changes of the CUDA kernels
#   make foreign-cuda                                    CUDA kernels of others, on the host
#   make sanitize                                        the operators under ASan, UBSan and TSan
#   make leaks                                           100,000 calls of each operator on the CPU
#   make matrix                                          both on every torch that is supported
#   make test-cuda                                       needs nvcc; a GPU for the tests that run
# The number of compilers at once is MAX_JOBS: one a processor, at most one per 2 GiB of memory.

PYTHON ?= python3
VENV ?= .venv
TORCH ?= torch==2.13.0
REQUIREMENTS := .ci/requirements.txt

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
export PATH := $(abspath $(BIN)):$(PATH)

# test-cuda has its own defaults, which the command line overrides as well
given = $(filter command line environment,$(origin $(1)))
CUDA_VENV := $(if $(call given,VENV),$(VENV),.venv-214)
CUDA_TORCH := $(if $(call given,TORCH),$(TORCH),torch==2.14.1)

.PHONY: venv build demo test test-slow test-cuda upstream ported fuzz fuzz-expressions fuzz-operators mutants cuda-mutants foreign-cuda sanitize leaks matrix lint clean FORCE
.DELETE_ON_ERROR:

venv: $(VENV)/.installed

# Changes with TORCH, with the Python and with the checkout's place, which the environment holds.
MADE_OF = $(TORCH), $(shell $(PYTHON) -V 2>&1), $(CURDIR)
$(VENV)/.made_of: FORCE
	@mkdir -p $(VENV)
	@echo '$(MADE_OF)' | cmp -s - $@ || echo '$(MADE_OF)' > $@

$(VENV)/.installed: $(REQUIREMENTS) $(VENV)/.made_of
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "Python 3.10+ is needed")'
	test ! -e $@ || rm -rf $(BIN) $(VENV)/lib $(VENV)/lib64 $(VENV)/pyvenv.cfg
	$(PYTHON) -m venv $(VENV)
	$(PIP) install -r $(REQUIREMENTS)
	$(PIP) install $(TORCH)
	@touch $@

# Compiles first, with its progress on the screen; then the installation finds nothing to compile.
build: $(VENV)/.installed
	$(BIN)/python setup.py --quiet build_ext --inplace
	@test $(VENV)/.editable -nt pyproject.toml -a $(VENV)/.editable -nt setup.py \
	    -a $(VENV)/.editable -nt $(VENV)/.installed || $(MAKE) --no-print-directory editable

.PHONY: editable
editable:
	$(PIP) install --no-build-isolation --no-deps -e .
	@touch $(VENV)/.editable

demo: build
	$(BIN)/python examples/char_lm/train.py

# Two processes, each with whole folders of tests in their order: one builds while the other runs. The
# limit is a test's own: what a folder's tests share, a library of 60 files, takes its time to build.
PYTEST := $(BIN)/python -m pytest --timeout=900 -o timeout_func_only=true --numprocesses=2 \
    --no-loadscope-reorder

# CUDA kernels on the host: the test device has them from then on, for nobody else's tests.
ON_HOST := $(addprefix tests/,cuda cuda_on_host)
test: build
	$(PYTEST) -m 'not slow' $(addprefix --ignore=,$(ON_HOST)) tests
	$(PYTEST) -m 'not slow' $(ON_HOST)

# tests/conftest.py says which are slow.
test-slow: build
	$(PYTEST) -m slow $(addprefix --ignore=,$(ON_HOST)) tests
	$(PYTEST) -m slow $(ON_HOST)
	$(BIN)/python -m torchext.testing.cuda_on_host torchext

# PyTorch's own operators, mirrored and compared with aten's; about half an hour on two cores.
upstream: build
	$(BIN)/python tests/upstream/run.py --json build/upstream.json

# torchlpc, which is fetched: docs/porting.md; two minutes.
ported: build
	$(BIN)/python examples/torchlpc/port.py

# Each is code or errors with places; FUZZ_CASES says how many.
FUZZ_CASES ?= 100000
fuzz: $(VENV)/.installed
	TORCHEXT_FUZZ_CASES=$(FUZZ_CASES) $(BIN)/python -m pytest -q --hypothesis-show-statistics \
	    tests/fuzz/test_fuzz.py

# Values, gradients and gradients of these, of the formulas, and of operators that are built in
# batches; EXPRESSIONS and BUILT_EXPRESSIONS say how many.
EXPRESSIONS ?= 50000
BUILT_EXPRESSIONS ?= 1000
fuzz-expressions: build
	TORCHEXT_EXPRESSIONS=$(EXPRESSIONS) PYTHONPATH=. $(BIN)/python -m pytest -q \
	    tests/fused/test_random_expressions.py
	PYTHONPATH=tests $(BIN)/python tests/fuzz/expressions.py --expressions $(BUILT_EXPRESSIONS)

# Built in batches, each 6 minutes on two cores; FUZZ_OPERATORS says how many operators.
FUZZ_OPERATORS ?= 10000
fuzz-operators: build
	PYTHONPATH=tests $(BIN)/python tests/fuzz/composed.py --operators $(FUZZ_OPERATORS)

# Each runs tests/codegen until a test fails; about an hour on two cores. What was found before is
# kept in build/mutants.json, and not run again.
MUTANTS ?= 500
mutants: $(VENV)/.installed
	$(PIP) install --quiet 'cosmic-ray>=8.7,<9'
	$(BIN)/python tests/mutants/run.py --mutants $(MUTANTS)

# Each is built for the host in a copy and runs tests of its operator; half an hour on two cores.
cuda-mutants: build
	$(BIN)/python tests/cuda_on_host/mutants/run.py

# Two packages, which are fetched, with their CUDA files as they are; ten minutes.
foreign-cuda: build
	$(BIN)/python tests/cuda_on_host/foreign/compare.py

# A copy in build/sanitize is built for each kind; about half an hour on two cores.
sanitize: $(VENV)/.installed
	$(BIN)/python tests/sanitize/run.py

LEAK_CALLS ?= 100000
leaks: build
	$(BIN)/python tests/leaks/memory.py --calls $(LEAK_CALLS)
	$(BIN)/python tests/leaks/memory.py --calls $$(($(LEAK_CALLS) / 50)) --device torchext

# Each torch has an environment and objects of its own; the library in place is that of the last.
# CUDA kernels are test-cuda's, and take long: TORCHEXT_CUDA=1 builds them here as well.
MATRIX ?= 2.11.0 2.14.1 2.13.0
matrix:
	failed=; for torch in $(MATRIX); do \
	    minor=$${torch%.*}; \
	    TORCHEXT_CUDA=$${TORCHEXT_CUDA:-0} \
	        $(MAKE) test test-slow TORCH=torch==$$torch VENV=.venv-$${minor%%.*}$${minor#*.} \
	        || failed="$$failed $$torch"; \
	done; \
	test -z "$$failed" || { echo "error: tests fail on torch$$failed" >&2; exit 1; }

# On a CUDA build of torch: the build with nvcc, the import, and what a few minutes show.
FAST := tests/device $(patsubst %,tests/ops/test_%.py,values gradients opcheck runtime_errors)
test-cuda: export TORCHEXT_CUDA := 1
test-cuda: export TORCH_CUDA_ARCH_LIST := $(or $(TORCH_CUDA_ARCH_LIST),9.0)
test-cuda:
	@command -v nvcc > /dev/null || test -x "$$CUDA_HOME/bin/nvcc" || \
	    test -x /usr/local/cuda/bin/nvcc || \
	    { echo "error: test-cuda needs nvcc: install the CUDA toolkit and put nvcc on PATH" \
	           "or set CUDA_HOME" >&2; exit 1; }
	$(MAKE) build VENV='$(CUDA_VENV)' TORCH='$(CUDA_TORCH)'
	$(CUDA_VENV)/bin/python -m pytest --timeout=900 tests/cuda $(FAST)

lint: $(VENV)/.installed
	$(PIP) install --quiet 'ruff>=0.14,<1'
	$(BIN)/python -m ruff check .

clean:
	rm -rf build dist *.egg-info operators/build operators/*.egg-info torchext/_C*
