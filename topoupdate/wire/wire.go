package wire

import (
	"net/netip"
	"time"

	"weft/topoupdate"
)

// Config says which ports to open.
type Config struct {
	// Interfaces are the ports' devices, by port number. One that is not there
	// has no carrier until it is.
	Interfaces []string

	// Shared lets several sockets of a machine receive the same messages: those of
	// listeners in several programs. Without, a second one is refused, as a second
	// agent on a switch should be.
	Shared bool

	// ReceiveBuffer bounds what waits at each port, in bytes as the kernel counts
	// them, about twice what the messages are long; 0 is DefaultReceiveBuffer.
	// Above it the kernel drops, and Stats counts.
	ReceiveBuffer int

	// CarrierEvery is how often the kernel's counts of lost carriers are read, besides its
	// messages, which are late while a program holds its network lock (RTNL), for instance
	// to change many routes. 0: never. It costs a microsecond per port each time. A machine
	// that does not show the counts does without.
	CarrierEvery time.Duration

	monitorBuffer int // of the monitor, in bytes; 0 is monitorBuffer. For tests
}

// DefaultReceiveBuffer holds the database of a fabric with thousands of switches.
const DefaultReceiveBuffer = 512 << 10

// Handler is told what happens at the ports. Its methods are called by Wait, one
// at a time; they must not call methods of Ports.
type Handler interface {
	// Carrier says that a port has gained or lost its carrier. In the beginning it is
	// called once for each port. For a loss so short that nobody saw it, it says down and
	// then up.
	Carrier(port int, up bool)

	// Receive gets a message, valid during the call, and the address that it came from,
	// which anybody on the cable could have forged. The message is cut after
	// topoupdate.MaxMessage + 1 bytes, so that one that is too long can be told.
	Receive(port int, from netip.Addr, message []byte)
}

// PortStats counts what one port did.
type PortStats struct {
	Sent       uint64 `json:"sent"`
	SendErrors uint64 `json:"send_errors"` // no carrier, or no room in the device's queue
	Received   uint64 `json:"received"`

	// Dropped is what the kernel did not hand over: the TTL was below 255, the frame
	// was not to the group, or the receive buffer was full. Modulo 2^32.
	Dropped uint64 `json:"dropped"`
}

// Stats counts what all ports did.
type Stats struct {
	Ports []PortStats `json:"ports"`

	// Overruns is how often the kernel had no room for its messages about devices, and all
	// were listed again.
	Overruns uint64 `json:"overruns"`
	// Early is how many losses of a carrier the kernel's count showed before its message.
	Early uint64 `json:"early"`
	// Rejoined is how often a device was made anew.
	Rejoined uint64 `json:"rejoined"`
}

// bufferBytes is room for one message, and for the byte that shows that it is too
// long.
const bufferBytes = topoupdate.MaxMessage + 1

// typeOfService is that of every message, see the package's comment.
const typeOfService = 0xD0
