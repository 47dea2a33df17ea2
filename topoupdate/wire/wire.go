package wire

import (
	"net/netip"
	"time"

	"weft/topoupdate"
)

// Config says which ports to open.
type Config struct {
	// Interfaces are the ports' devices, by port number. A device that does not exist yet
	// has no carrier.
	Interfaces []string

	// Shared lets several sockets of a machine receive the same messages, as listeners in
	// several programs do. Without it a second socket is refused, as a second agent on a
	// switch should be.
	Shared bool

	// ReceiveBuffer bounds the messages that wait at each port, in bytes as the kernel
	// counts them, about twice the messages' length; 0 is DefaultReceiveBuffer. Above it
	// the kernel drops, and Stats counts.
	ReceiveBuffer int

	// CarrierEvery is the time between two reads of the kernel's counts of lost carriers.
	// The kernel's messages about losses are late while a program holds its network lock
	// (RTNL), for example to change many routes. 0: never. Each read costs a microsecond
	// per port. A machine without these counts works without.
	CarrierEvery time.Duration

	monitorBuffer int // of the monitor, in bytes; 0 is monitorBuffer. For tests
}

// DefaultReceiveBuffer holds the database of a fabric with thousands of switches.
const DefaultReceiveBuffer = 512 << 10

// Handler is told what happens at the ports. Wait calls its methods one at a time; they
// must not call methods of Ports.
type Handler interface {
	// Carrier says that a port has gained or lost its carrier. At the start it is called
	// once for each port. For a loss so short that nobody saw it, Carrier is called
	// twice: down, then up.
	Carrier(port int, up bool)

	// Receive gets a message, valid during the call, and its source address, which
	// anybody on the cable could have forged. The message is cut after
	// topoupdate.MaxMessage + 1 bytes, so that a message that is too long can be
	// recognised.
	Receive(port int, from netip.Addr, message []byte)
}

// PortStats counts what one port did.
type PortStats struct {
	Sent       uint64 `json:"sent"`
	SendErrors uint64 `json:"send_errors"` // no carrier, or no room in the device's queue
	Received   uint64 `json:"received"`

	// Dropped counts, modulo 2^32, packets that the kernel did not deliver: the TTL was
	// below 255, the frame was not to the group, or the receive buffer was full.
	Dropped uint64 `json:"dropped"`
}

// Stats counts what all ports did.
type Stats struct {
	Ports []PortStats `json:"ports"`

	// Overruns counts how often the kernel had no room for its messages about devices, so
	// that all devices were listed again.
	Overruns uint64 `json:"overruns"`
	// Early counts losses of a carrier that the kernel's count showed before its message.
	Early uint64 `json:"early"`
	// Rejoined counts devices that were replaced.
	Rejoined uint64 `json:"rejoined"`
}

// bufferBytes is room for one message, and for the byte that shows that it is too
// long.
const bufferBytes = topoupdate.MaxMessage + 1

// typeOfService is that of every message, see the package's comment.
const typeOfService = 0xD0
