package daemon

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"weft/link"
)

// What strangers send to the socket, however much, does not keep the daemon's own datagram out.
func TestAdmission_strangersAreDropped(t *testing.T) {
	socket, err := net.ListenUDP("udp6", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("[::1]:0")))
	if err != nil {
		t.Skip(err) // no IPv6 here
	}
	defer socket.Close()
	a := &admission{socket: socket, packet: append(make([]byte, link.SuperHeadroom), "12345678"...)}
	if err := a.onlyToken(); err != nil {
		t.Fatal(err)
	}
	peer, err := net.DialUDP("udp6", nil, socket.LocalAddr().(*net.UDPAddr))
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	big := make([]byte, 10_000) // a few fill a socket
	for range 1000 {
		for _, b := range [][]byte{big, []byte("1234567"), []byte("12345679"), {}} {
			if _, err := peer.Write(b); err != nil {
				t.Fatal(err)
			}
		}
	}
	if a.heard(time.Now().Add(time.Millisecond)) {
		t.Error("a stranger's was taken for the own one")
	}
	if _, err := peer.Write([]byte("12345678")); err != nil {
		t.Fatal(err)
	}
	if !a.heard(time.Now().Add(time.Minute)) {
		t.Error("the own one was not heard")
	}
}
