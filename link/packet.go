package link

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/net/bpf"
)

// Bounds of PacketConfig.ReceiveBuffer in bytes.
const (
	// DefaultReceiveBuffer holds some 120 super-segments of 64 KB.
	DefaultReceiveBuffer = 16 << 20
	minReceiveBuffer     = 256 << 10
	maxReceiveBuffer     = 1 << 30
)

// MaxBusyPoll bounds PacketConfig.BusyPoll: to be woken costs little of a longer wait.
const MaxBusyPoll = 10 * time.Millisecond

// maxFilter is the kernel's bound (BPF_MAXINSNS), in instructions.
const maxFilter = 4096

// PacketConfig says how to open a packet socket.
type PacketConfig struct {
	// Interface is the name of the uplink, which must be like Ethernet.
	Interface string
	// Gateway is the neighbour on the uplink to which everything is sent, IPv4 or IPv6.
	// Without it the device only receives, and drops written packets.
	Gateway netip.Addr
	// MTU of the fabric in bytes; 0 means the interface's.
	MTU int
	// Filter is a classic BPF program that selects packets; nil takes all. It returns 0,
	// or at least the length of the longest packet; 0x40000 suffices. It sees the
	// Ethernet header, so IP starts at byte 14. It does not see frames that are not IP,
	// have a VLAN tag, or are not addressed to this host alone.
	Filter []bpf.RawInstruction
	// FilterFD, in place of Filter, is the descriptor of an eBPF program of type socket
	// filter; 0 means none. It alone decides, also about frames that Filter does not see.
	FilterFD int
	// Fanout makes sockets of the same non-zero number share the packets of the
	// interface, by a hash of the flow (PACKET_FANOUT_HASH). So each socket has a reader
	// of its own, and a flow stays with one socket.
	Fanout uint16
	// ReceiveBuffer bounds the packets that wait to be read, in bytes as the kernel
	// counts them. Packets above it are dropped and counted. 0 means
	// DefaultReceiveBuffer. Without CAP_NET_ADMIN the kernel's own bound
	// (net.core.rmem_max) applies, too.
	ReceiveBuffer int
	// BusyPoll is for how long a Read looks for packets again and again before it sleeps;
	// 0, the default, is not at all, and the most is 10 ms. So no packet that comes within
	// that time waits until the reader's thread is awake. It costs a processor for as long
	// after each packet, be it a probe: where probes come more often than that, the reader
	// never sleeps, and a Host without traffic takes a whole processor. Other goroutines run
	// meanwhile. It is 0 where GOMAXPROCS is 1 when the socket is opened: there the runtime does
	// not look for other sockets' packets while a goroutine can run.
	BusyPoll time.Duration
	// Priority is the priority of sent packets in the uplink's queue (SO_PRIORITY). 6
	// overtakes waiting packets where the queue has classes. Above 6 the kernel requires
	// CAP_NET_ADMIN.
	Priority int
}

func (c *PacketConfig) validate() error {
	if c.ReceiveBuffer == 0 {
		c.ReceiveBuffer = DefaultReceiveBuffer
	}
	switch {
	case c.Interface == "":
		return errors.New("packet: Interface is missing: name the uplink")
	case c.MTU != 0 && (c.MTU < minMTU || c.MTU > MaxSuperLen):
		return fmt.Errorf("packet: MTU is %d bytes, must be from %d to %d", c.MTU, minMTU, MaxSuperLen)
	case c.BusyPoll < 0 || c.BusyPoll > MaxBusyPoll:
		return fmt.Errorf("packet: BusyPoll is %v, must be from 0 to %v", c.BusyPoll, MaxBusyPoll)
	case c.ReceiveBuffer < minReceiveBuffer || c.ReceiveBuffer > maxReceiveBuffer:
		return fmt.Errorf("packet: ReceiveBuffer is %d bytes, must be from %d to %d", c.ReceiveBuffer, minReceiveBuffer, maxReceiveBuffer)
	case c.FilterFD != 0 && c.Filter != nil:
		return errors.New("packet: Filter and FilterFD are both given; leave one out")
	case len(c.Filter) > maxFilter-len(prelude):
		return fmt.Errorf("packet: Filter has %d instructions, must have at most %d", len(c.Filter), maxFilter-len(prelude))
	}
	return nil
}
