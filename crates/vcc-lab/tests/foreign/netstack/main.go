// A guest with gVisor's TCP/IP stack, behind the TAP device whose descriptor it inherits as 3.
//
//	netstack MTU listen|connect send|receive
//
// It is 192.0.2.1, its next hop 192.0.2.2 and its peer 198.51.100.2; the port is 5001. It sends or
// receives for as long as it is let.
package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strconv"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/fdbased"
	"gvisor.dev/gvisor/pkg/tcpip/network/arp"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
)

const (
	nic  = 1
	port = 5001
	tap  = 3
)

func fail(what string, why any) {
	fmt.Fprintf(os.Stderr, "netstack: %s: %v\n", what, why)
	os.Exit(1)
}

func newStack(mtu uint32) *stack.Stack {
	s := stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{arp.NewProtocol, ipv4.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol},
	})
	// Off unless it is asked for.
	sack := tcpip.TCPSACKEnabled(true)
	if err := s.SetTransportProtocolOption(tcp.ProtocolNumber, &sack); err != nil {
		fail("SACK", err)
	}
	link, err := fdbased.New(&fdbased.Options{
		FDs:            []int{tap},
		MTU:            mtu,
		EthernetHeader: true,
		Address:        tcpip.LinkAddress("\x02\x00\x00\x00\x00\x01"),
	})
	if err != nil {
		fail("the device", err)
	}
	if err := s.CreateNIC(nic, link); err != nil {
		fail("the card", err)
	}
	address := tcpip.ProtocolAddress{
		Protocol:          ipv4.ProtocolNumber,
		AddressWithPrefix: tcpip.AddrFrom4([4]byte{192, 0, 2, 1}).WithPrefix(),
	}
	address.AddressWithPrefix.PrefixLen = 24
	if err := s.AddProtocolAddress(nic, address, stack.AddressProperties{}); err != nil {
		fail("the address", err)
	}
	s.SetRouteTable([]tcpip.Route{{
		Destination: header.IPv4EmptySubnet,
		Gateway:     tcpip.AddrFrom4([4]byte{192, 0, 2, 2}),
		NIC:         nic,
	}})
	return s
}

func open(s *stack.Stack, how string) io.ReadWriter {
	switch how {
	case "listen":
		listener, err := gonet.ListenTCP(s, tcpip.FullAddress{NIC: nic, Port: port}, ipv4.ProtocolNumber)
		if err != nil {
			fail("listen", err)
		}
		conn, err := listener.Accept()
		if err != nil {
			fail("accept", err)
		}
		return conn
	case "connect":
		peer := tcpip.FullAddress{NIC: nic, Addr: tcpip.AddrFrom4([4]byte{198, 51, 100, 2}), Port: port}
		conn, err := gonet.DialContextTCP(context.Background(), s, peer, ipv4.ProtocolNumber)
		if err != nil {
			fail("connect", err)
		}
		return conn
	}
	fail("listen or connect", how)
	return nil
}

func main() {
	if len(os.Args) != 4 {
		fail("usage", "netstack MTU listen|connect send|receive")
	}
	mtu, err := strconv.ParseUint(os.Args[1], 10, 16)
	if err != nil {
		fail("the MTU", err)
	}
	conn := open(newStack(uint32(mtu)), os.Args[2])
	switch os.Args[3] {
	case "send":
		chunk := bytes.Repeat([]byte{'x'}, 1<<16)
		for err == nil {
			_, err = conn.Write(chunk)
		}
	case "receive":
		_, err = io.Copy(io.Discard, conn)
	default:
		fail("send or receive", os.Args[3])
	}
}
