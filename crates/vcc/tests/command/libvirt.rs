//! The hook for libvirt, called as libvirt calls it.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use vcc_testing::{ip, on_a_host};

use crate::{Said, vcc};

/// A domain as libvirt writes it: disks have targets too, and not every interface has a tap.
const DOMAIN: &str = "<domain type='kvm' id='7'>
  <name>acme-web</name>
  <devices>
    <disk type='file' device='disk'>
      <source file='/var/lib/libvirt/images/acme-web.qcow2'/>
      <target dev='vda' bus='virtio'/>
    </disk>
    <interface type='bridge'>
      <mac address='52:54:00:aa:bb:01'/>
      <source bridge='br0'/>
      <target dev='tap-acme-1'/>
      <model type='virtio'/>
      <alias name='net0'/>
    </interface>
    <interface type='network'>
      <source network='default' portid='0d0c' bridge='virbr0'/>
      <target dev='vnet3'/>
    </interface>
    <interface type='direct'>
      <source dev='eth0' mode='bridge'/>
      <target dev='macvtap0'/>
    </interface>
    <interface type='bridge'>
      <source bridge='br0'/>
      <target dev='tap-gone'/>
    </interface>
    <console type='pty' tty='/dev/pts/3'>
      <target type='serial' port='0'/>
    </console>
  </devices>
</domain>
";

fn hook(operation: &str, options: Option<&str>) -> Said {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let command = Path::new(env!("CARGO_BIN_EXE_vcc")).parent().expect("a directory");
    let path = std::env::var("PATH").expect("PATH");
    let mut hook = Command::new(root.join("packaging/libvirt/qemu"));
    hook.arg("acme-web").args(operation.split(' '));
    hook.env("PATH", format!("{}:{path}", command.display())).env_remove("VCC_OPTIONS");
    hook.envs(options.map(|options| ("VCC_OPTIONS", options)));
    let mut child = hook
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the hook");
    // A hook that does not read its input may end before the input is written.
    let _ = child.stdin.take().expect("its stdin").write_all(DOMAIN.as_bytes());
    child.wait_with_output().expect("its end").into()
}

#[test]
fn taps_of_a_domain_that_starts_are_attached() {
    on_a_host(|| {
        for tap in ["tap-acme-1", "vnet3", "macvtap0"] {
            ip(&format!("link add {tap} type veth peer name {tap}-g"));
        }
        // libvirt would take the hook's output as the domain's XML.
        for operation in ["prepare begin -", "start begin -", "migrate begin -", "restore begin -"]
        {
            assert_eq!(hook(operation, None).well(), "", "{operation}");
            assert_eq!(vcc("ports").well(), "vcc is attached nowhere\n", "{operation}");
        }
        // One tap has gone meanwhile: the domain runs all the same.
        assert_eq!(hook("started begin -", None).well(), "");
        let ports = vcc("ports").well();
        for tap in ["tap-acme-1", "vnet3"] {
            assert!(ports.contains(&format!("{tap}: reno-ecn, shadow, ")), "{ports}");
        }
        assert!(!ports.contains("macvtap0:"), "{ports}");
        // libvirt was started anew; all is there already.
        assert_eq!(hook("reconnect begin -", None).well(), "");
        assert_eq!(vcc("ports").well(), ports);
        assert_eq!(hook("stopped end shutdown", None).well(), "");
        assert_eq!(hook("release end -", None).well(), "");

        vcc("detach --all").well();
        assert_eq!(hook("started begin -", Some("--underlay dctcp --police")).well(), "");
        let ports = vcc("ports").well();
        assert!(ports.contains("tap-acme-1: dctcp, enforce"), "{ports}");
    });
}
