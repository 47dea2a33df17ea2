package encap_test

import (
	"fmt"
	"net/netip"

	"weft/encap"
)

// A packet is wrapped to a bouncing switch, which takes the header off again.
func Example() {
	inner := []byte("\x45\x00\x00\x1c\x12\x34\x40\x00\x40\x11\x13\x96\x0a\x00\x00\x02\x0a\x03\x01\x03\x00\x07\x00\x07\x00\x08\x00\x00")
	outer, err := encap.NewIPIPOuter(netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("10.4.1.1"))
	if err != nil {
		panic(err)
	}
	buf := append(make([]byte, encap.MaxOverhead), inner...) // room for the header
	packet, err := outer.Encapsulate(buf, 0x1234)
	if err != nil {
		panic(err)
	}
	fmt.Println(len(inner), "bytes become", len(packet))

	back, err := encap.Decapsulate(packet)
	fmt.Println(string(back) == string(inner), err)
	// Output:
	// 28 bytes become 48
	// true <nil>
}
