# `make demo` shows Farrier at work, `make test` proves it. Both install what they need on Debian, first.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:

# Where images and logs go, and how many machines the end-to-end runs have at a time.
BUILD ?= build
JOBS ?= 2
# End-to-end cases to run, all when empty: `make e2e CASES="straight truncated"`.
CASES ?=

TARGET_DIR := $(or $(CARGO_TARGET_DIR),target)
# Looked up when used: `deps` may install it.
CARGO = $(shell tests/setup/cargo.sh)
RUN = PATH="$(dir $(CARGO)):$$PATH" $(CARGO)
# The lab makes network namespaces.
ROOT := $(if $(filter 0,$(shell id -u)),,sudo --preserve-env=CARGO_TARGET_DIR)
# What the lab needs. With the tests built as well, the same libraries serve both: two sets are compiled otherwise.
PROGRAMS = -p farrier-controller -p farrier-image -p farrier-tests
LAB = $(ROOT) $(TARGET_DIR)/debug/farrier-lab --build-dir $(BUILD)

# What is under way, and since when.
SAY = printf '== %(%T)T  %s\n' -1

.PHONY: help
help: ## Say what there is
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/make \1|\2/p' $(MAKEFILE_LIST) | column -t -s '|'

.PHONY: demo
demo: programs image target-os ## Build everything, boot a virtual machine, provision it, show it running
	@$(SAY) "demo: one machine from power-on to its installed system"
	@$(LAB) demo

.PHONY: test
test: PROGRAMS = --workspace --bins --tests
test: check unit bench-smoke fuzz histories image-again image-full e2e ## Prove everything: format, lints, unit tests, fuzzing, documentation, licences, end-to-end runs

.PHONY: deps
deps: ## Install what building and the lab need
	@$(SAY) "deps: Debian packages"
	@tests/setup/install.sh

.PHONY: programs
programs: deps ## Build the controller and the lab
	@$(SAY) "programs: controller, image builder, lab"
	@$(RUN) build --locked $(PROGRAMS)

.PHONY: build
build: deps ## Build what an operator installs: the controller, optimised, and the inspection image
	@$(SAY) "build: the controller"
	@$(RUN) build --release --locked -p farrier-controller
	@$(SAY) "build: the inspection image with the static agent"
	@$(RUN) run --release --locked --quiet -p farrier-image -- build --out $(BUILD)/inspection --cache $(BUILD)/cache

.PHONY: image
image: programs ## Build the inspection image: static agent, kernel, drivers
	@$(SAY) "image: the inspection image with the static agent"
	@$(TARGET_DIR)/debug/farrier-image build --within-goal --out $(BUILD)/inspection --cache $(BUILD)/cache

.PHONY: image-full
image-full: image ## Build the inspection image for servers as well; both fail when too large
	@$(SAY) "image-full: the same agent with every driver a server needs"
	@$(TARGET_DIR)/debug/farrier-image build --within-goal --profile full --out $(BUILD)/inspection-full --cache $(BUILD)/cache

# Unpacked anew, under another name, user mask, time zone and language.
.PHONY: image-again
image-again: image ## Build the inspection image a second time, under other circumstances: the same bytes
	@$(SAY) "image-again: the same image of the same agent, from packages unpacked anew"
	@rm -rf $(BUILD)/again && mkdir -p $(BUILD)/again/cache && cp $(BUILD)/cache/*.deb $(BUILD)/again/cache
	@umask 077; TZ=Pacific/Chatham LC_ALL=C.UTF-8 $(TARGET_DIR)/debug/farrier-image build \
		--out $(BUILD)/again/another-name --cache $(BUILD)/again/cache
	@for file in vmlinuz initrd.img; do cmp $(BUILD)/{inspection,again/another-name}/$$file || \
		{ echo "$$file is not reproducible: compare the two, unpacked (zstd, cpio)"; exit 1; }; done
	@rm -rf $(BUILD)/again

.PHONY: target-os
target-os: programs ## Build the Debian disk image that the runs install
	@$(SAY) "target-os: a Debian disk image to install"
	@$(LAB) target-os

.PHONY: check
check: deps ## Format, lints, documentation, licences
	@$(SAY) "check: format"
	@$(RUN) fmt --all --check
	@$(SAY) "check: lints"
	@$(RUN) clippy --locked --workspace --all-targets --quiet -- -D warnings
	@$(SAY) "check: documentation"
	@RUSTDOCFLAGS="-D warnings" $(RUN) doc --locked --workspace --no-deps --quiet
	@if command -v cargo-deny >/dev/null; then \
		$(SAY) "check: licences and sources"; $(RUN) deny --offline check bans licenses sources; \
	else $(SAY) "check: cargo-deny is not installed; a unit test holds dependencies against deny.toml"; fi

.PHONY: unit
unit: deps ## Unit and integration tests
	@$(SAY) "unit: unit and integration tests"
	@emulator=$$(tests/setup/sushy.sh $(BUILD)/sushy) && \
		FARRIER_SUSHY_EMULATOR="$$emulator" $(RUN) test --locked --workspace

# Seconds for each target, and targets when not all: `make fuzz FUZZ_SECONDS=600 FUZZ="dhcp image"`.
FUZZ_SECONDS ?= 10
FUZZ ?=
.PHONY: fuzz
fuzz: deps ## Fuzz every parser of foreign bytes, from the committed corpus
	@$(SAY) "fuzz: $(FUZZ_SECONDS) seconds for each parser of foreign bytes"
	@FUZZ_SECONDS=$(FUZZ_SECONDS) BUILD=$(BUILD) tests/fuzz/run.sh $(FUZZ)

# Random histories of a model fleet, optimised since there are many: `make histories HISTORIES=1000000`.
HISTORIES ?= 100000
.PHONY: histories
histories: deps ## Random histories against the lifecycle's invariants; seeds are printed
	@$(SAY) "histories: $(HISTORIES) random histories of a fleet"
	@FARRIER_HISTORIES=$(HISTORIES) $(RUN) test --release --locked -p farrier-shared --test histories

# Sizes of fleets and seconds each is left alone: `make bench-fleet HOSTS=100,1000 IDLE=60`.
HOSTS ?= 100,1000,10000
IDLE ?= 300
.PHONY: bench-fleet
bench-fleet: deps ## Measure the controller with fleets of played servers: speed, memory, idle cost, growth
	@$(SAY) "bench-fleet: the optimised controller with $(HOSTS) hosts"
	@$(RUN) build --release --locked -p farrier-controller -p farrier-tests --bin farrier --bin farrier-fleet
	@$(TARGET_DIR)/release/farrier-fleet bench --hosts $(HOSTS) --idle $(IDLE)

# `make bench BENCH="--size 1024 --no-loop"`: needs twice the size in /dev/shm, and root for the loop device.
BENCH ?=
# As it ships, which is with musl; where rustup does not have it, with the machine's own C library.
MUSL = $(shell rustup target list --installed 2>/dev/null | grep -x x86_64-unknown-linux-musl)
.PHONY: bench
bench: deps ## Measure the deploy pipeline beside curl | decompressor | dd
	@$(SAY) "bench: the deploy pipeline, built with $(or $(MUSL),the C library of this machine)"
	@CC_x86_64_unknown_linux_musl=musl-gcc $(RUN) bench --locked --profile agent -p farrier-agent --bench deploy \
		$(addprefix --target=,$(MUSL)) -- $(BENCH)

# Every figure of it is worthless; that all of them are measured, and the bytes the same, is what it shows.
.PHONY: bench-smoke
bench-smoke: deps ## Run the benchmark of the pipeline once, small and not optimised
	@$(SAY) "bench-smoke: the benchmark of the deploy pipeline itself"
	@$(RUN) bench --locked --profile dev --workspace --bench deploy -- --size 64 --runs 1 --no-loop

.PHONY: e2e
e2e: image target-os ## End-to-end runs in virtual machines
	@$(SAY) "e2e: virtual machines under real firmware"
	@$(LAB) e2e --jobs $(JOBS) $(CASES)

.PHONY: clean
clean: ## Remove what was built
	@rm -rf $(TARGET_DIR) $(BUILD)
