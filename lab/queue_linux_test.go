package lab

import (
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/kernel/kerneltest"
)

// Whoever fills the queues does not keep the switches' messages waiting:
// neither at the port of who sends them nor where they are forwarded.
func TestLab_controlPassesFullQueues(t *testing.T) {
	l := upLab(t, Config{Topology: kerneltest.Topology(t, "fat-tree:k=2,host-rate=100,fabric-rate=2,core-rate=100"), QueueBytes: 750_000})
	if slices.ContainsFunc(l.Notes, func(n string) bool { return strings.Contains(n, "pfifo_fast") }) {
		t.Skip(l.Notes)
	}
	hosts := kerneltest.Hosts(l.Config.Topology)
	socks := listenUDP(t, l, hosts...)
	control := listenUDP(t, l, hosts[0])[0]
	raw, err := control.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_TOS, 0xd0) })
	if err != nil {
		t.Fatal(err)
	}
	// 30 packets take 0.18 s at the edge switch's uplink, where the queue has
	// room for 49, and less than 4 ms at the host's port.
	const packets = 30
	for i := range packets {
		if _, err := socks[0].WriteTo(append(make([]byte, 1400), byte(i)), socks[1].LocalAddr()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := control.WriteTo([]byte("control"), socks[1].LocalAddr()); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 1500)
	for i := range packets + 1 {
		socks[1].SetReadDeadline(time.Now().Add(kerneltest.Patience))
		n, from, err := socks[1].ReadFrom(b)
		if err != nil {
			t.Fatalf("after %d packets: %v", i, err)
		}
		if from.(*net.UDPAddr).Port == control.LocalAddr().(*net.UDPAddr).Port {
			if i > packets/2 {
				t.Errorf("%q came behind %d of %d packets", b[:n], i, packets)
			}
			return
		}
	}
	t.Error("the switches' message did not arrive")
}
