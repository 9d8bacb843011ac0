//! Lines of the documentation that take too long, or change the machine.

/// Lines that are not run here, each as it stands in a page, and the test that runs it, or why none can.
/// An entry that no page has any more fails a test.
pub const ELSEWHERE: &[(&str, &str)] = &[
    ("vcc run --records /var/log/vcc/connections.json", RECORDS),
    ("vcc report --since 24h", RECORDS),
    ("vcc report --since 24h --by rule --html day.html", RECORDS),
    ("vcc report --since 2026-11-28 --until 2026-11-29 --by guest --json", RECORDS),
    ("journalctl -u vcc -o cat | vcc report -", RECORDS),
    ("make demo", "minutes: `vcc-lab run` of it is run short by runs.rs of vcc-lab"),
    ("make test", "this is it"),
    ("faults/run.sh", "scripts/test.sh tries some of them"),
    ("make prove", "scripts/test.sh runs the quick proofs"),
    ("make fuzz", "minutes: every test run replays what is in fuzz/corpus"),
    ("make fmt", "scripts/test.sh checks the format"),
    ("make guest-kernel", "scripts/test.sh runs guest/kernel/build.sh"),
    ("make pvtcp-kernel", PVTCP),
    ("make pvtcp-kernel RELEASE=7.3", PVTCP),
    ("apt-get install ./linux-image-*-pvtcp_*.deb", PVTCP),
    ("reboot", "it would"),
    ("nstat -az TcpExtTCPPVStalls TcpExtTCPPVTimers TcpExtTCPPVSamples TcpExtTCPTimeouts", PVTCP),
    ("make build", "scripts/test.sh builds"),
    ("make deb", "scripts/test/deb.sh makes it of a binary that is there"),
    ("apt-get install ./vcc_*.deb", "scripts/test/deb.sh installs it by dpkg"),
    ("apt-get purge vcc", "scripts/test/deb.sh purges it by dpkg"),
    ("make install PREFIX=/usr/local", "scripts/test/install.sh, below a directory"),
    ("make uninstall PREFIX=/usr/local", "scripts/test/install.sh, below a directory"),
    (
        "make release",
        "minutes: scripts/test/release.sh makes all but packages of a binary that is there",
    ),
    ("scripts/check-reproducible.sh", "a quarter of an hour: a part of scripts/verify.sh"),
    ("skopeo copy oci-archive:dist/vcc-0.1.0.oci.tar docker-daemon:vcc:0.1.0", NO_DOCKER),
    (
        "skopeo copy --all oci-archive:dist/vcc-0.1.0.oci.tar docker://registry.example/vcc:0.1.0",
        NO_DOCKER,
    ),
    (
        "docker run --detach --name vcc --network host --read-only --cap-drop ALL --cap-add BPF \
         --cap-add NET_ADMIN --cap-add PERFMON --cap-add NET_RAW --security-opt apparmor=unconfined \
         --volume /sys/kernel/rcu_expedited:/sys/kernel/rcu_expedited --volume /sys/fs/bpf:/sys/fs/bpf --volume /run/vcc:/run/vcc --volume /etc/vcc:/etc/vcc:ro \
         vcc:0.1.0",
        NO_DOCKER,
    ),
    ("docker exec vcc vcc ports", NO_DOCKER),
    ("kubectl apply -f packaging/kubernetes/daemonset.yaml", NO_CLUSTER),
    ("kubectl --namespace vcc rollout status daemonset/vcc", NO_CLUSTER),
    (
        "helm install vcc packaging/kubernetes/chart --namespace vcc --create-namespace --set \
         image.repository=REGISTRY/vcc",
        CHART,
    ),
    ("kubectl get vccnodes", CHART),
    ("kubectl apply --server-side -f packaging/kubernetes/crds.yaml", CHART),
    ("kubectl apply --server-side -f packaging/kubernetes/agent.yaml", CHART),
    (
        "kubectl --namespace vcc get pods -o name | xargs -I {} kubectl --namespace vcc exec {} -- \
         /usr/bin/vcc detach --all --wait",
        NO_CLUSTER,
    ),
    ("helm uninstall vcc --namespace vcc", CHART),
    ("kubectl --namespace vcc exec daemonset/vcc -- /usr/bin/vcc ports", NO_CLUSTER),
    (
        "install -D -m 755 packaging/libvirt/qemu /etc/libvirt/hooks/qemu",
        "libvirt.rs runs the hook",
    ),
    ("systemctl restart libvirtd", "libvirt.rs runs the hook"),
    ("make install", "scripts/test/install.sh, below a directory"),
    (
        "vcc-lab run overlay-guess --runs 1 --json a.json",
        "minutes: its parts are tested in vcc-lab",
    ),
    (
        "vcc-lab run overlay-guess-fast --runs 1 --json b.json",
        "minutes: its parts are tested in vcc-lab",
    ),
    (
        "jq -r '.cases[] | .name as $case | .runs[].vcc[].overlay | [$case, .congestion_control, .class] | \
         @tsv' a.json b.json",
        "reads what those two wrote",
    ),
    ("vcc-lab run vcc-fig11", "minutes: run short by runs.rs of vcc-lab"),
    ("vcc-lab run vcc-fig11 --backend virtual", "minutes: run short by virtual_time.rs of vcc-lab"),
    ("vcc-lab run vcc-fig11 --backend virtual --quick", "run by virtual_time.rs of vcc-lab"),
    ("vcc-lab report results/", "reads what others wrote: page.rs of vcc-lab"),
    ("vcc domain --socket PATH --tap tap1", "runs until it is killed: run by live/"),
    ("vcc domain --device veth3 --act hold", "runs until it is killed: run by live/device.rs"),
    ("vcc domain --device veth3 --act split", "runs until it is killed: run by live/device.rs"),
    (
        "vcc domain --socket /run/vcc-web.sock --tap tap1 --act hold --retransmit",
        "runs until it is killed: run by live/",
    ),
    (
        "vcc domain --socket /run/vcc-web.sock --tap tap1 --act hold --retransmit --channel \
         /run/vcc-web-channel.sock",
        "runs until it is killed: run by live/channel.rs",
    ),
    (
        "vcc domain --socket /run/vcc-domain-tap1/card --tap tap1 --policy /etc/vcc/policy.toml",
        "runs until it is killed: run by live/",
    ),
    ("apt-get install ./vcc-guest_*.deb", "scripts/test/deb.sh installs it by dpkg"),
    ("apt-get purge vcc-guest", "scripts/test/deb.sh purges it by dpkg"),
    ("systemctl enable --now vcc-guest", IN_A_GUEST),
    ("systemctl disable --now vcc-guest", IN_A_GUEST),
    ("systemctl enable --now vcc-guest-channel", IN_A_GUEST),
    ("install -m 755 vcc-guest /usr/local/bin/", IN_A_GUEST),
    ("install -m 644 vcc-guest.service /etc/systemd/system/", IN_A_GUEST),
    (
        "tcpdump -i veth3 -s 128 -w trace.pcap tcp",
        "runs until it is killed, and need not be installed",
    ),
    ("tcpdump -i veth3 -s 0 -w guest.pcap tcp", "runs until it is killed"),
    ("tcpdump -i eth0 -s 0 -w fabric.pcap tcp", "runs until it is killed"),
    ("vcc trial", "a minute: seeing.rs runs it for less"),
    ("vcc-guest status", IN_A_GUEST),
    ("ss -ti", IN_A_GUEST),
    ("apt-get install dkms linux-headers-$(uname -r)", "installs a compiler"),
    ("dkms install vcc-flood/0.1.0", "scripts/check-pvtcp.sh compiles the module"),
    ("vcc-lab bench connections", "half a minute, and 1.5 GB: run short by bench.rs of vcc-lab"),
    ("vcc-lab bench datapath", "minutes: run short by bench.rs of vcc-lab"),
    ("vcc-lab bench domain", "run short by bench.rs of vcc-lab"),
    ("vcc-lab bench flood", "minutes: run short by bench.rs of vcc-lab"),
    ("vcc-lab bench host", "half a minute, and 1.5 GB: run short by bench.rs of vcc-lab"),
    ("vcc-lab bench ports", "minutes: run short by bench.rs of vcc-lab"),
    ("vcc-lab bench verifier", "run by bench.rs of vcc-lab"),
    ("vcc-lab bench virtual", "minutes: run short by bench.rs of vcc-lab"),
];

const IN_A_GUEST: &str = "guest/kernels/init does in a virtual machine what changes TCP's default";
const PVTCP: &str =
    "`vcc-lab run live-pvtcp` builds such packages in a small configuration, and boots them";
const NO_DOCKER: &str =
    "needs a Docker daemon, and downloads; docs/packaging.md lists what was tested";
const CHART: &str = "vcc-testing's tests do it on an API server: kubernetes/chart.rs";
const NO_CLUSTER: &str = "needs a cluster; scripts/test/kubernetes.sh checks what it is given";
const RECORDS: &str = "daemon/recording.rs writes records, and has them summed up";
