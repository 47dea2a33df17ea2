package failover

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"weft/encap"
	"weft/topoupdate"
)

func TestDataTo_takesDataToTheseAlone(t *testing.T) {
	bounces := []netip.Addr{netip.MustParseAddr("10.4.1.1"), netip.MustParseAddr("10.4.1.2"), netip.MustParseAddr("10.4.2.2")}
	vm, err := bpf.NewVM(dataTo(bounces))
	if err != nil {
		t.Fatal(err)
	}
	src, dst := netip.MustParseAddr("10.0.0.130"), netip.MustParseAddr("10.3.1.131")
	udp := func(port uint16, options int) []byte {
		b := append(nested(bounces[1], src, dst, unix.IPPROTO_UDP), make([]byte, 40)...)
		b[20] = byte(0x40 | (20+options)/4)
		binary.BigEndian.PutUint16(b[40+options+2:], port)
		return b
	}
	plain := nested(bounces[0], src, dst, unix.IPPROTO_TCP)
	plain[9] = unix.IPPROTO_TCP
	tests := []struct {
		name   string
		packet []byte
		taken  bool
	}{
		{"TCP to the first", nested(bounces[0], src, dst, unix.IPPROTO_TCP), true},
		{"TCP to the second", nested(bounces[1], src, dst, unix.IPPROTO_TCP), true},
		{"TCP to the last", nested(bounces[2], src, dst, unix.IPPROTO_TCP), true},
		{"TCP to another", nested(netip.MustParseAddr("10.4.2.1"), src, dst, unix.IPPROTO_TCP), false},
		{"not encapsulated", plain, false},
		{"UDP", udp(53, 0), true},
		{"a probe", udp(encap.ProbePort, 0), false},
		{"a probe with options", udp(encap.ProbePort, 8), false},
		{"an update", udp(topoupdate.Port, 0), false},
		{"cut short", nested(bounces[0], src, dst, unix.IPPROTO_TCP)[:24], false},
	}
	for _, tt := range tests {
		n, err := vm.Run(tt.packet)
		if err != nil || (n > 0) != tt.taken {
			t.Errorf("%s: %d bytes taken, %v", tt.name, n, err)
		}
	}
}

func TestHoleFilter_ofNoneTakesNothing(t *testing.T) {
	for _, bounces := range [][]netip.Addr{nil, make([]netip.Addr, maxBounces+1)} {
		vm, err := bpf.NewVM(dataTo(bounces))
		if err != nil {
			t.Fatal(err)
		}
		if n, err := vm.Run(make([]byte, 100)); n != 0 || err != nil {
			t.Errorf("%d bytes taken, %v", n, err)
		}
	}
	many := make([]netip.Addr, maxBounces)
	for i := range many {
		many[i] = netip.AddrFrom4([4]byte{10, 1, 1, byte(i)})
	}
	if _, err := holeFilter(many); err != nil {
		t.Errorf("%d bounces: %v", len(many), err)
	}
}
