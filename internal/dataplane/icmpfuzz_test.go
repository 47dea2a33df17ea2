package dataplane

import (
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip/header"

	"weft/encap"
	"weft/flowcell"
	"weft/link"
	"weft/resequencer"
)

// Whatever an error quotes, nothing panics, what is not in flight is not believed, and
// no MTU is that no path has.
func FuzzConcerns(f *testing.F) {
	inner := dataPacket(1, 1000)
	copy(inner[12:16], addrA.AsSlice())
	fixed(inner)
	core := fatTree.Paths(0, 15).Addr(1)
	f.Add(switchError(3, 4, 1400, core, inner, 548), true)
	f.Add(switchError(3, 1, 0, core, inner, 28), false)
	f.Add(plainError(addrA), true)
	six := make([]byte, 44)
	six[0], six[5], six[6], six[23], six[39] = 0x6f, 4, 1, 1, 2
	f.Add(six, true)
	f.Add(icmpError6(2, 0, 1300, addrA6, dataPacket6(1, 100)), true)
	f.Add(icmpError6(1, 4, 0, addrA6, dataPacket6(1, 100)[:50]), false)
	f.Add(switchError6(f, 2, 0, 1300, mustOuter(encap.NewIPIPOuter(addrA6, addrB6)), addrA6, dataPacket6(1, 100)), true)
	f.Fuzz(func(t *testing.T, b []byte, relays bool) {
		in := newIngress(newPlainSource(nil), newToKernel(&recorder{max: link.MaxSuperLen}), resequencer.Config{}, &handClock{})
		in.accepts = func(*flowcell.Packet, []byte) bool { return true }
		in.relays, in.flights = relays, newFlights(1)
		in.flights.on.Store(true)
		in.narrow = func(flowcell.Address, int) { t.Fatal("what was never sent is believed") }
		if len(b) >= 20 && b[0]>>4 == 4 && int(b[0]&0xf)*4 <= len(b) && b[0]&0xf >= 5 { // or few get far
			ip := header.IPv4(b)
			ip.SetChecksum(0)
			ip.SetChecksum(^ip.CalculateChecksum())
		}
		in.Receive(b)
	})
}
