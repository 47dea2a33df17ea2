package hostprog

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"weft/flowcell"
)

// orderFlow is struct flow of bpf/order.c.
type orderFlow struct {
	key      orderKey
	next     atomic.Uint32
	diverted atomic.Uint64
	returned atomic.Uint64
	seen     uint32
	// straight, far, and tracks or about: a byte, a byte and two.
	rest atomic.Uint32
}

// orderKey is struct key, in the byte order of the network.
type orderKey struct {
	src, dst [16]byte
	ports    [4]byte
}

// Of bpf/order.c.
const (
	orderWays    = 4
	orderBuckets = 16384

	orderEstablished = 64

	orderBudget = 64 // packets in 16.8 ms

	orderParts = 256
)

// FlowTable is the flows of an Order, in memory that is shared with its programs. Flows have
// numbers. A flow of which packets are diverted keeps its number until Return has given it
// back. Only the reader of the diverted packets may use the table. It remains readable after
// Order.Close.
type FlowTable struct {
	flows []orderFlow
	parts *ebpf.Variable
	seed  uint64
}

func openFlowTable(m *ebpf.Map, parts *ebpf.Variable, seed uint64) (*FlowTable, error) {
	const n = orderBuckets * orderWays
	mem, err := unix.Mmap(m.FD(), 0, n*int(unsafe.Sizeof(orderFlow{})), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("share the table of flows: %w", err)
	}
	t := &FlowTable{flows: unsafe.Slice((*orderFlow)(unsafe.Pointer(&mem[0])), n), parts: parts, seed: seed}
	runtime.AddCleanup(t, func(mem []byte) { unix.Munmap(mem) }, mem)
	return t, nil
}

// Len returns how many numbers there are. They begin with 0.
func (t *FlowTable) Len() int { return len(t.flows) }

// Find returns the number of a flow.
func (t *FlowTable) Find(flow *flowcell.FiveTuple) (number int, ok bool) {
	k := keyOf(flow)
	from := k.bucket(t.seed) * orderWays
	for i := from; i < from+orderWays; i++ {
		if t.flows[i].key == k {
			return i, true
		}
	}
	return 0, false
}

// Parts returns into how many parts the flows are divided for Limit, by random.
func (t *FlowTable) Parts() int { return orderParts }

// Limit has only the flows of so many parts, from one on, be diverted when they have a hole. Behind
// the last part comes the first. The programs begin with all. Of the other flows the kernel gets
// everything at once, in whatever order it comes.
func (t *FlowTable) Limit(from, parts int) error { return t.parts.Set(uint32(from<<16 | parts)) }

// Next returns the sequence number at which a flow goes on.
func (t *FlowTable) Next(number int) uint32 { return t.flows[number].next.Load() }

// Diverted returns how many packets of a flow the reader has got, or has missed.
func (t *FlowTable) Diverted(number int) uint64 { return t.flows[number].diverted.Load() }

// Returned returns what Return was told last.
func (t *FlowTable) Returned(number int) uint64 { return t.flows[number].returned.Load() }

// Tracks returns the tracks by which datagrams of a flow come (flowcell.Place), a bit each. 0:
// not known yet, or there are more than the program can tell apart.
func (t *FlowTable) Tracks(number int) uint16 {
	v := t.flows[number].rest.Load()
	var b [4]byte
	binary.NativeEndian.PutUint32(b[:], v)
	if tracks := binary.NativeEndian.Uint16(b[2:]); b[0] >= orderEstablished && tracks>>flowcell.NoTrack == 0 {
		return tracks
	}
	return 0
}

// Return tells that so many of the diverted packets have gone to the kernel, all of them,
// and that the flow goes on at next. The reader must not hold any packet of the flow.
func (t *FlowTable) Return(number int, next uint32, packets uint64) {
	f := &t.flows[number]
	f.next.Store(next) // before the flow can be the program's again
	f.returned.Store(packets)
}

func keyOf(flow *flowcell.FiveTuple) (k orderKey) {
	k.src, k.dst = flow.Src.IP().As16(), flow.Dst.IP().As16()
	if flow.Proto == flowcell.ProtoUDP {
		k.src[7] = flow.Proto // only of IPv4, in whose form these bytes are 0
	}
	binary.BigEndian.PutUint16(k.ports[:], flow.SrcPort)
	binary.BigEndian.PutUint16(k.ports[2:], flow.DstPort)
	return k
}

// bucket is bucket_of of bpf/order.c.
func (k *orderKey) bucket(seed uint64) int {
	h, word := seed, func(b []byte) uint64 { return uint64(binary.NativeEndian.Uint32(b)) }
	for i := 0; i < 16; i += 4 {
		h = (h ^ (word(k.src[i:])<<32 | word(k.dst[i:]))) * 0xff51afd7ed558ccd
		h ^= h >> 32
	}
	h = (h ^ word(k.ports[:])) * 0xc4ceb9fe1a85ec53
	h ^= h >> 29
	return int(uint32(h) & (orderBuckets - 1))
}
