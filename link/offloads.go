package link

import (
	"fmt"
	"strings"
)

// Offloads says what a device got from the kernel.
type Offloads struct {
	// Opener names what opened the device: "netlink", "water", "packet",
	// "memory".
	Opener string
	// Checksum: packets may pass with a checksum that is still to be completed.
	Checksum bool
	// TSO4, TSO6 and USO: TCP over IPv4, TCP over IPv6 and UDP may be read as
	// super-segments.
	TSO4, TSO6, USO bool
	// Queues is the number of queues.
	Queues int
	// Refused counts super-segments that the kernel refused at run time. At the first,
	// MaxSuper becomes 0.
	Refused uint64
	// Fallback says why there is less than was asked for; "" if nothing is missing.
	Fallback string
}

// String describes o in one line.
func (o Offloads) String() string {
	var has []string
	for _, f := range []struct {
		got  bool
		name string
	}{{o.Checksum, "checksum"}, {o.TSO4, "tso4"}, {o.TSO6, "tso6"}, {o.USO, "uso"}} {
		if f.got {
			has = append(has, f.name)
		}
	}
	if has == nil {
		has = []string{"no offloads"}
	}
	s := fmt.Sprintf("%s: %s, ", o.Opener, strings.Join(has, " "))
	if o.Queues == 1 {
		s += "1 queue"
	} else {
		s += fmt.Sprintf("%d queues", o.Queues)
	}
	if o.Refused > 0 {
		s += fmt.Sprintf(", %d super-segments refused", o.Refused)
	}
	if o.Fallback != "" {
		s += " (" + o.Fallback + ")"
	}
	return s
}

// Offloads implements the package's Offloads: memory has none.
func (m *Memory) Offloads() Offloads { return Offloads{Opener: "memory", Queues: 1} }
