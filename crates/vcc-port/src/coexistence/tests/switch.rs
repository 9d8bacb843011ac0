//! Open vSwitch with its datapath in user space.

use vcc_testing::OpenVSwitch;

use super::*;

#[test]
fn a_port_of_the_user_space_datapath() {
    on_a_host(|| {
        let _guest = guest();
        let Some(switch) = OpenVSwitch::start() else {
            return skip("Open vSwitch is not installed");
        };
        switch.vsctl("add-br br0 -- set bridge br0 datapath_type=netdev");
        switch.vsctl("add-port br0 port");
        let findings = look(PORT);
        let (severity, found) = only(&findings, "openvswitch");
        assert_eq!(severity, Severity::Problem, "{findings:#?}");
        assert!(found.contains("ovs-vswitchd (process "), "{found}");
        assert!(of_kind(&findings, "packet-socket").is_empty(), "{findings:#?}");
        switch.vsctl("del-port br0 port");
        assert!(of_kind(&look(PORT), "openvswitch").is_empty());
    });
}
