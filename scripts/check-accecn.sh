#!/bin/sh
# Plays Linux's own conformance scripts for AccECN (RFC 9768), with vcc in the place of Linux. They come
# with the source of the lab's second kernel, which is built if it is missing.
set -eu
cd "$(dirname "$0")/.."
kernel=$(guest/kernel/build.sh --release 7.2)
VCC_ACCECN_SCRIPTS=$(dirname "$kernel")/packetdrill
export VCC_ACCECN_SCRIPTS
exec ${CARGO:-cargo} test --package vcc-engine --test engine linux_scripts -- --nocapture
