# make book    build the site             make test    everything that guards the project
# make lab     open the chapters          make run     re-execute notebooks in place (NB=03_jvp for one)
# make export  notebooks -> minijax/      make site-check   look at the built site in a browser
# make bench   benchmarks against JAX     make fuzz    random programs, many of them
# make constraints   pin the newest versions that pyproject.toml allows
# make clean   remove what was built      make distclean    … and the environment
#
# Each makes .venv with what it needs.  With PY=python (say, in a conda environment) nothing is installed.

PYTHON ?= python3
ifeq ($(origin PY),undefined)
PY    := .venv/bin/python
ready  = .venv/.ready-$(1)
endif

, := ,
JOBS      ?= 2
SITE      := book/_build/html
NOTEBOOKS := $(wildcard notebooks/*.ipynb notebooks/solutions/*.ipynb)
PAGES     := $(wildcard book/*.md book/*.yml book/_ext/*.py book/_static/* book/_vendor/*)
PIP       := -m pip install --quiet --disable-pip-version-check

export JAX_PLATFORMS = cpu
export JUPYTER_PREFER_ENV_PATH = 1
export PYDEVD_DISABLE_FILE_VALIDATION = 1

.PHONY: book test lab run export check-export bench fuzz site-check constraints clean distclean
.DELETE_ON_ERROR:

book: book/_build/.ready
	@echo
	@echo "The book: file://$(CURDIR)/$(SITE)/index.html"
	@echo "or serve it: $(PY) -m http.server --directory $(SITE) 8000, then http://localhost:8000"

test: $(call ready,test)
	@mkdir -p notebooks
	$(PY) -m pytest tests notebooks -n $(JOBS) --dist loadfile --durations=5 --nbval \
	    --nbval-current-env --nbval-sanitize-with tests/nbval_sanitize.cfg --nbval-cell-timeout 600
	@$(MAKE) --no-print-directory book/_build/.ready

lab: $(call ready,notebooks)
	$(PY) -m jupyterlab notebooks

run: $(call ready,notebooks)
	$(PY) tools/notebooks.py run $(NB)

export: $(call ready,notebooks)
	$(PY) tools/export.py

check-export: $(call ready,book)
	$(PY) tools/export.py --check

bench: $(call ready,test)
	$(PY) -m benchmarks --sweep --json benchmarks/results.json

fuzz: $(call ready,test)
	MINIJAX_FUZZ_EXAMPLES=1000 $(PY) -m pytest $(addprefix tests/test_,random_programs.py passes.py nesting.py)

# The stamp is written only after a build without warnings.  A build always starts anew: an incremental
# one would not repeat the warnings of the pages that it skips.
book/_build/.ready: $(call ready,book) $(NOTEBOOKS) $(PAGES) $(wildcard minijax/*.py minijax/*/*.py) tools/export.py
	$(PY) tools/export.py --check
	rm -rf book/_build book/notebooks
	$(PY) -c "from jupyter_book.cli.main import main; main()" build book --builder html -W -n --keep-going --quiet
	@touch $@

site-check: $(call ready,book) book/_build/.ready
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null \
	    || command -v google-chrome >/dev/null || $(MAKE) --no-print-directory chromium
	$(PY) tools/site_check.py $(SITE)

.PHONY: chromium
chromium:
	$(if $(filter 0,$(shell id -u)),,sudo) apt-get update -q
	$(if $(filter 0,$(shell id -u)),,sudo) apt-get install -y -q --no-install-recommends chromium

# --- The environment ------------------------------------------------------------------------------

.venv/bin/python:
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11))" \
	    || { echo "minijax needs Python 3.11 or newer: make PYTHON=python3.12 …"; exit 1; }
	$(PYTHON) -m venv .venv

# A stamp for each set of extras; the tests need them all.
.venv/.ready-book: extras = book
.venv/.ready-notebooks: extras = notebooks
.venv/.ready-test: extras = book notebooks test
.venv/.ready-%: pyproject.toml constraints.txt | .venv/bin/python
	@echo "Installing the environment ($(extras)) into .venv …"
	$(PY) $(PIP) --constraint constraints.txt --editable ".[$(subst $() ,$(,),$(extras))]"
	@touch $(addprefix .venv/.ready-,$(extras))

constraints:
	rm -rf .constraints-venv
	$(PYTHON) -m venv .constraints-venv
	.constraints-venv/bin/python $(PIP) --upgrade setuptools wheel
	.constraints-venv/bin/python $(PIP) --editable ".[book,notebooks,test]"
	echo "# Written by 'make constraints': every package of the environment, in the version that is tested." \
	    > constraints.txt
	.constraints-venv/bin/python -m pip freeze --all --exclude pip --exclude-editable >> constraints.txt
	rm -rf .constraints-venv

# --- Leaving nothing behind -----------------------------------------------------------------------

clean:
	rm -rf book/_build book/notebooks .pytest_cache .hypothesis build *.egg-info
	find minijax tests tools book benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

distclean: clean
	rm -rf .venv .constraints-venv
