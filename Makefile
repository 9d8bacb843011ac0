# Entry points for users and developers. Cargo builds; this adds dependencies, tests and packaging.

CARGO ?= cargo
PREFIX ?= /usr/local
TARGET_DIR := $(or $(CARGO_TARGET_DIR),target)
VCC := $(TARGET_DIR)/release/vcc
VCC_LAB := $(TARGET_DIR)/release/vcc-lab
VCC_GUEST := $(TARGET_DIR)/release/vcc-guest

.PHONY: help deps build build-lab guest-kernel pvtcp-kernel test demo prove fuzz verify renew bench deb release install uninstall fmt clean

help:
	@echo 'make demo     build the lab, then show the problem and the cure on live TCP: 3 to 6 minutes (root)'
	@echo 'make build    build the commands $(VCC), $(VCC_LAB) and $(VCC_GUEST)'
	@echo 'make guest-kernel  build the guest kernel for virtual time if missing (root, 4 minutes)'
	@echo 'make pvtcp-kernel  build packages of a kernel with PVTCP for guests (root, hours; docs/pvtcp.md)'
	@echo 'make test     run all checks and tests; without root, those that need it are skipped'
	@echo 'make prove    prove what docs/proofs.md says of the engine, with a model checker (twenty minutes)'
	@echo 'make fuzz     look for inputs that break a law, a minute for each target (docs/testing.md)'
	@echo 'make verify   all that takes longer: proofs, faults, fuzzing, the figures that are stale (root, hours)'
	@echo 'make renew    measure again what is older than its code (root; MINUTES=90: what fits into them)'
	@echo 'make bench    measure the cost of the datapath and the speed of virtual time (root)'
	@echo 'make deb      build the Debian packages vcc, vcc-lab and vcc-guest'
	@echo 'make release  packages for amd64 and arm64, a container image and what belongs to them, in dist/'
	@echo 'make install  install the commands, their pages and units below PREFIX=$(PREFIX)'
	@echo 'make uninstall  remove what `make install` installed'
	@echo 'make deps     install missing packages that building and testing need (root)'
	@echo 'make fmt      format Rust and C'
	@echo 'make clean    remove build artifacts'

deps:
	@scripts/install-deps.sh

# Results say which commit measured them.
build build-lab: export VCC_COMMIT = $(shell git describe --always --dirty 2>/dev/null)
build: deps
	$(CARGO) build --release --package vcc --package vcc-lab --package vcc-guest

# With the features of `make build`, which then compiles nothing a second time.
build-lab: deps
	$(CARGO) build --release --package vcc --package vcc-lab --package vcc-guest --bin vcc-lab

guest-kernel:
	@guest/kernel/build.sh

# An option of build.sh by a variable of make's command line; others' environments have such names too.
option = $(if $(filter command,$(firstword $(origin $1))),$2 '$($1)')

minutes = $(if $(filter command,$(firstword $(origin MINUTES))),$(MINUTES))

pvtcp-kernel:
	@guest/pvtcp/build.sh $(call option,RELEASE,--release) $(call option,CONFIG,--config) pvtcp-kernel

test:
	@scripts/install-deps.sh test
	@CARGO='$(CARGO)' scripts/test.sh

demo: build-lab
	@mkdir -p results
	$(VCC_LAB) run vcc-fig11 --quick --case without --case with --plot results/vcc-fig11.svg

prove:
	@proofs/run.sh

fuzz: deps
	@CARGO='$(CARGO)' fuzz/run.sh

verify: build
	@scripts/install-deps.sh verify
	@CARGO='$(CARGO)' VCC='$(VCC)' VCC_LAB='$(VCC_LAB)' MINUTES='$(minutes)' scripts/verify.sh

renew: build
	@scripts/install-deps.sh verify
	@CARGO='$(CARGO)' VCC='$(VCC)' VCC_LAB='$(VCC_LAB)' MINUTES='$(minutes)' scripts/verify.sh experiments bench

bench: build
	@mkdir -p results
	$(VCC_LAB) bench datapath --json results/bench-datapath.json
	$(VCC_LAB) bench connections --json results/bench-connections.json
	$(VCC_LAB) bench host --json results/bench-host.json
	$(VCC_LAB) bench domain --json results/bench-domain.json
	$(VCC_LAB) bench flood --json results/bench-flood.json
	$(VCC_LAB) bench ports --json results/bench-ports.json
	$(VCC_LAB) bench throughput --json results/bench-throughput.json
	$(VCC_LAB) bench virtual --json results/bench-virtual.json

deb: build
	@scripts/package-deb.sh $(VCC)
	@scripts/package-deb.sh $(VCC_LAB)
	@scripts/package-deb.sh $(VCC_GUEST)

release:
	@scripts/install-deps.sh release
	@CARGO='$(CARGO)' scripts/release.sh

# Existing binaries are installed without cargo: `make build`, then `sudo make install`.
install: $(if $(and $(wildcard $(VCC)),$(wildcard $(VCC_LAB))),,build)
	@VCC='$(VCC)' VCC_LAB='$(VCC_LAB)' PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' scripts/install.sh install

uninstall:
	@PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' scripts/install.sh uninstall

fmt:
	$(CARGO) fmt --all
	scripts/format-c.sh -i

clean:
	$(CARGO) clean
