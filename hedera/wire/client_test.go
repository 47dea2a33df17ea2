package wire

import (
	"net"
	"net/netip"
	"testing"
)

// Servers know a node by its address, so its messages come from it.
func TestDial_speaksFromTheNodesAddress(t *testing.T) {
	server, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	own := netip.MustParseAddr("127.0.0.2") // all of 127.0.0.0/8 is local on Linux
	if c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(own, 0))); err != nil {
		t.Skipf("this system has no %v", own)
	} else {
		c.Close()
	}
	at := server.LocalAddr().(*net.UDPAddr).AddrPort()
	config := ClientConfig{Fabric: 5, Address: own, Servers: []netip.AddrPort{at}, Keys: secret, Place: func([]Placement) {}}
	c, err := Dial(config)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, from, err := server.ReadFromUDPAddrPort(make([]byte, MaxMessage)); err != nil || from.Addr().Unmap() != own {
		t.Errorf("the hello comes from %v (%v), want %v", from, err, own)
	}
	config.Servers[0] = netip.MustParseAddrPort("[fd00::1]:9341")
	if c, err := Dial(config); err == nil {
		c.Close()
		t.Error("a server of another family is taken")
	}
}
