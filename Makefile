# What a developer or a curious user types. Cargo does the building; this adds what lies around it.

CARGO ?= cargo
PREFIX ?= /usr/local
TARGET_DIR := $(or $(CARGO_TARGET_DIR),target)
VCC := $(TARGET_DIR)/release/vcc

.PHONY: help deps build guest-kernel test demo verify bench deb install uninstall fmt clean

help:
	@echo 'make demo     the problem and the cure on live TCP, in about two minutes (root)'
	@echo 'make build    the command: $(VCC)'
	@echo 'make guest-kernel  the kernel of guests in virtual time, where it is missing (root, 4 minutes)'
	@echo 'make test     all checks and tests; those that need root are skipped without it'
	@echo 'make verify   all experiments of the papers, at full length, and a page of them (root, hours)'
	@echo 'make bench    what the datapath costs, and how fast virtual time passes (root)'
	@echo 'make deb      the Debian package'
	@echo 'make install  the command and all that goes with it, below PREFIX=$(PREFIX); make uninstall'
	@echo 'make deps     what is missing of the packages that all this needs (root)'
	@echo 'make fmt      formats Rust and C'
	@echo 'make clean    removes what was built'

deps:
	@scripts/install-deps.sh

build: deps
	$(CARGO) build --release --package vcc

guest-kernel:
	@guest/kernel/build.sh

test:
	@scripts/install-deps.sh test
	@CARGO='$(CARGO)' scripts/test.sh

demo: build
	@mkdir -p results
	$(VCC) lab run vcc-fig11 --quick --case without --case with --plot results/vcc-fig11.svg

verify: build
	@scripts/install-deps.sh verify
	@CARGO='$(CARGO)' VCC='$(VCC)' scripts/verify.sh

bench: build
	@mkdir -p results
	$(VCC) bench datapath --json results/bench-datapath.json
	$(VCC) bench throughput --json results/bench-throughput.json
	$(VCC) bench virtual --json results/bench-virtual.json

deb: build
	@scripts/package-deb.sh $(VCC)

# Where it is built already, no cargo is needed: `sudo make install` after `make build`.
install: $(if $(wildcard $(VCC)),,build)
	@VCC='$(VCC)' PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' scripts/install.sh install

uninstall:
	@PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' scripts/install.sh uninstall

fmt:
	$(CARGO) fmt --all
	scripts/format-c.sh -i

clean:
	$(CARGO) clean
