package failover

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"weft/internal/kernel"
	"weft/lab"
	"weft/topology"
	"weft/topoupdate"
)

// updateTap listens to all updates of a node, at all its devices.
type updateTap struct {
	fd       int
	node     string
	ports    map[int]string // by index
	buf, oob []byte
}

// Where an update's parts are, in bytes: see package topoupdate's comment.
const (
	updateHeaders = 20 + 8 // IP without options, UDP
	updateType    = 3
	updateBody    = 48
	updateEntry   = 22
	isUpdate      = 2
)

// updateFilter takes updates from a packet socket (SOCK_DGRAM).
var updateFilter = []bpf.Instruction{
	bpf.LoadAbsolute{Off: 0, Size: 1},
	bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0x45, SkipTrue: 7},
	bpf.LoadAbsolute{Off: 9, Size: 1},
	bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.IPPROTO_UDP, SkipTrue: 5},
	bpf.LoadAbsolute{Off: 22, Size: 2},
	bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: topoupdate.Port, SkipTrue: 3},
	bpf.LoadAbsolute{Off: updateHeaders + updateType, Size: 1},
	bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: isUpdate, SkipTrue: 1},
	bpf.RetConstant{Val: topoupdate.MaxMessage + updateHeaders},
	bpf.RetConstant{Val: 0},
}

// openUpdateTap opens one in the calling thread's network namespace.
func openUpdateTap(node string) (*updateTap, error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("trace: packet socket (CAP_NET_RAW): %w", err)
	}
	t := &updateTap{fd: fd, node: node, ports: make(map[int]string), buf: make([]byte, topoupdate.MaxMessage+updateHeaders), oob: make([]byte, unix.CmsgSpace(16))}
	if err := t.configure(); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("trace: %w", err)
	}
	return t, nil
}

func (t *updateTap) configure() error {
	raw, err := bpf.Assemble(updateFilter)
	if err != nil {
		return err
	}
	if err := kernel.AttachSocketFilter(t.fd, raw); err != nil {
		return err
	}
	devices, err := net.Interfaces()
	if err != nil {
		return err
	}
	for _, d := range devices {
		t.ports[d.Index] = d.Name
	}
	if err := unix.SetsockoptInt(t.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 4<<20); err != nil {
		return fmt.Errorf("receive buffer (CAP_NET_ADMIN): %w", err)
	}
	if err := unix.SetsockoptInt(t.fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1); err != nil {
		return fmt.Errorf("kernel timestamps: %w", err)
	}
	return unix.Bind(t.fd, &unix.SockaddrLinklayer{Protocol: bigEndian(unix.ETH_P_ALL)})
}

// drain adds what was seen since the last time to a trace.
func (t *updateTap) drain(top *topology.Topology, to *trace) error {
	for {
		n, oobn, _, from, err := unix.Recvmsg(t.fd, t.buf, t.oob, 0)
		switch {
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.ENETDOWN):
			continue
		case errors.Is(err, unix.EAGAIN):
			return nil
		case err != nil:
			return os.NewSyscallError("recvmsg", err)
		}
		at, err := timestamp(t.oob[:oobn])
		if err != nil {
			return err
		}
		e := traceEvent{At: at, Node: t.node, What: traceHeard, Of: originators(top, t.buf[min(n, updateHeaders):n])}
		if a, ok := from.(*unix.SockaddrLinklayer); ok {
			if a.Pkttype == unix.PACKET_OUTGOING {
				e.What = traceSent
			}
			e.Of = t.ports[a.Ifindex] + " about " + e.Of
		}
		to.add(e)
	}
}

func (t *updateTap) close() error { return unix.Close(t.fd) }

// originators names the switches that an update is about, and how many of their
// ports are down.
func originators(top *topology.Topology, b []byte) string {
	var names []string
	for b = b[min(len(b), updateBody):]; len(b) >= updateEntry; {
		id := topology.NodeID(binary.BigEndian.Uint32(b))
		n := int(binary.BigEndian.Uint16(b[updateEntry-2:]))
		if !top.Valid(id) || len(b) < updateEntry+n {
			break
		}
		names = append(names, fmt.Sprintf("%s:%x", top.Node(id).Name, b[updateEntry:updateEntry+n]))
		b = b[updateEntry+n:]
	}
	return strings.Join(names, " ")
}

// tracer is what a trace listens with.
type tracer struct {
	trace
	taps []*updateTap
}

// startTracer listens at all nodes of a lab.
func startTracer(lab *lab.Lab) (t *tracer, err error) {
	t = new(tracer)
	defer func() {
		if err != nil {
			err = errors.Join(err, t.close())
		}
	}()
	for n := range lab.Config.Topology.Nodes() {
		err := lab.Do(n.ID, func() error {
			tap, err := openUpdateTap(n.Name)
			if err == nil {
				t.taps = append(t.taps, tap)
			}
			return err
		})
		if err != nil {
			return t, fmt.Errorf("%s: %w", n.Name, err)
		}
	}
	return t, nil
}

// drain takes what the taps have seen.
func (t *tracer) drain(top *topology.Topology) error {
	for _, tap := range t.taps {
		if err := tap.drain(top, &t.trace); err != nil {
			return fmt.Errorf("trace of %s: %w", tap.node, err)
		}
	}
	return nil
}

func (t *tracer) close() (err error) {
	for _, tap := range t.taps {
		err = errors.Join(err, tap.close())
	}
	return err
}
