package sim

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"weft/bench/sim/workload"
	"weft/resequencer"
)

// Places where packets queue, in the order of a path between pods.
const (
	HostNIC = iota // a host's own
	EdgeUp         // 1st hop of the papers
	AggUp
	CoreDown // a leaf-spine's spines are aggregation switches: it has none of these
	AggDown
	EdgeDown // 5th hop: to the host
	Places
)

// Result is what was measured between Warmup and the end.
type Result struct {
	End time.Duration // of the run

	Places [Places]Place
	// DeliveredBytes is the payload that was handed to applications in order, by
	// receiving host.
	DeliveredBytes []int64
	Ports          []Port // by number, see View

	// Of data packets, in nanoseconds.
	Latency      *hdrhistogram.Histogram // from entering the first switch to leaving the last (DRB §5.3)
	RTT          *hdrhistogram.Histogram // from sending to the acknowledgement that it causes; not of packets that are sent again
	Resequencing *hdrhistogram.Histogram // how long the resequencer kept it; 0 counts

	// OutOfOrder[n] counts data packets that arrived behind n packets sent after them in
	// their flow (RFC 4737 §4.2's extent, in packets that overtook). The last entry
	// counts those behind more.
	OutOfOrder  [64]uint64
	Resequencer resequencer.Stats // of all hosts together, of the whole run

	DataPackets, AckPackets, ProbePackets uint64 // sent
	Retransmits, Timeouts                 uint64
	Flows                                 uint64 // ended
	PacketHops                            uint64 // of the whole run: packets that a port has sent
}

// Place sums up the ports of one kind.
type Place struct {
	Packets, Drops, Marks uint64
	// Of the queue as packets find it, in bytes, without the packets themselves.
	MeanBytes, VarBytes float64
	MaxBytes            int
	Wait                *hdrhistogram.Histogram // ns before a packet's first bit leaves
	// TimeMeanBytes is the mean over time and ports, including the packet on the wire.
	TimeMeanBytes float64
}

// Port is one end of a link.
type Port struct {
	Bytes    int64
	Drops    uint64
	MaxBytes int
}

// FlowEnd is a flow whose last byte has been acknowledged.
type FlowEnd struct {
	workload.Flow
	FCT                            time.Duration // from Start to the last byte's delivery to the application
	Retransmits, Timeouts, DupAcks uint32        // DupAcks: as TCP counts them, without those that the resequencer avoided
}
