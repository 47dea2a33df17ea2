package link

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/shortage"
)

// Packet is a packet socket on an uplink that is like Ethernet. It receives copies: the
// kernel still gets every packet, unless a later stage takes it, such as a tc program at
// the uplink's ingress. Sent packets pass tc at the uplink's egress and its queue, but
// not the routing tables. It is safe for concurrent use: reads take turns, and so do
// writes.
type Packet struct {
	name        string
	mtu         int
	file        *os.File
	raw         syscall.RawConn
	next        *nextHop    // nil without a gateway
	out         *sendSocket // nil without a gateway
	rd          packetReader
	wr          packetWriter
	offloads    Offloads
	super       super
	drops       atomic.Uint64
	denied      atomic.Uint64 // of these, Denied
	kernelDrops atomic.Uint64
	closed      atomic.Bool
}

// OpenPacket opens a packet socket in the network namespace of the calling thread. It
// waits up to three seconds for the gateway's MAC address.
func OpenPacket(c PacketConfig) (*Packet, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	p, err := openPacket(c)
	if err != nil {
		return nil, shortage.Explain(fmt.Errorf("packet %s: %w", c.Interface, err))
	}
	return p, nil
}

func openPacket(c PacketConfig) (*Packet, error) {
	up, err := findUplink(c.Interface)
	if err != nil {
		return nil, err
	}
	if c.MTU == 0 {
		c.MTU = up.mtu
	}
	file, limited, err := openSocket(c, up.index)
	if err != nil {
		return nil, err
	}
	p := &Packet{name: c.Interface, mtu: c.MTU, file: file}
	p.offloads = Offloads{Opener: "packet", Checksum: true, TSO4: true, TSO6: true, USO: kernelHasUSO(), Queues: 1, Fallback: limited}
	if limited != "" {
		p.super.note(limited)
	}
	p.super.max.Store(MaxSuperLen)
	p.rd.init(p.readBatch)
	if runtime.GOMAXPROCS(0) > 1 {
		p.rd.busy = c.BusyPoll
	}
	p.wr.init(p.writeBatch, p.writeScattered)
	if p.raw, err = file.SyscallConn(); err == nil && c.Gateway.IsValid() {
		if p.next, err = findNextHop(up, c.Gateway); err == nil {
			if p.out, err = openSender(c, up.index); err != nil {
				p.next.close()
			}
		}
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return p, nil
}

// MTU returns the fabric's MTU in bytes.
func (p *Packet) MTU() int { return p.mtu }

// MaxSuper implements the package's MaxSuper.
func (p *Packet) MaxSuper() int { return int(p.super.max.Load()) }

// Offloads implements the package's Offloads.
func (p *Packet) Offloads() Offloads { return p.super.fill(p.offloads) }

// Drops returns how many packets were lost: refused by the kernel for sending, written
// without a gateway, not received because the receive buffer was full, too long for the
// reader's buffer, or malformed.
func (p *Packet) Drops() uint64 {
	p.collect()
	return p.drops.Load() + p.kernelDrops.Load()
}

// collect adds what the kernel has counted since the last time.
func (p *Packet) collect() {
	// An error means that the socket is closed; what was counted stays.
	_ = p.raw.Control(func(fd uintptr) {
		if s, err := unix.GetsockoptTpacketStats(int(fd), unix.SOL_PACKET, unix.PACKET_STATISTICS); err == nil {
			p.kernelDrops.Add(uint64(s.Drops))
		}
	})
}

// Holds reports whether at least so many of the bytes written wait in the uplink's queue or at
// the network card, as the kernel counts them: with what each packet costs in memory. Without a
// gateway nothing waits.
func (p *Packet) Holds(bytes int) bool { return p.out != nil && p.out.holds(bytes) }

// SetReadDeadline makes a Read that waits at that time, or begins later, return
// os.ErrDeadlineExceeded. The zero time means never.
func (p *Packet) SetReadDeadline(t time.Time) error { return p.file.SetReadDeadline(t) }

// Close closes the socket and unblocks Read. It may be called more than once.
func (p *Packet) Close() error {
	if p.closed.Swap(true) {
		return nil
	}
	p.collect()
	var err error
	if p.next != nil {
		p.next.close()
		err = p.out.close()
	}
	if err := errors.Join(err, p.file.Close()); err != nil {
		return fmt.Errorf("packet %s: %w", p.name, err)
	}
	return nil
}

// closedOr is net.ErrClosed in place of whatever else Close has caused.
func (p *Packet) closedOr(err error) error {
	if err != nil && p.closed.Load() {
		return net.ErrClosed
	}
	return err
}
