package hostprog

//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -go-package hostprog -cc clang-14 -strip llvm-strip-14 -no-global-types -tags linux -target bpfel,bpfeb order bpf/order.c -- -O2 -g -Wall -Werror -mcpu=v3 -I../kernel/bpf -idirafter /usr/include/x86_64-linux-gnu

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/cilium/ebpf"

	"weft/internal/kernel"
)

// OrderConfig says whose packets are put in order.
type OrderConfig struct {
	Uplink    string       // an Ethernet device
	Addresses []netip.Addr // of this host, whose TCP it is; at most 16
	Datagrams Datagrams    // of IPv4 to Addresses, as in the senders' SprayConfig

	// Behind are prefixes behind this host, whose TCP is put in order, too; at most 1,024. Forwarded
	// is SprayConfig.Forwarded: the reader gets of TCP that the host forwards what is noted there.
	Behind    []netip.Prefix
	Forwarded *Forwarded

	// SuperBytes, if more than 64 KB, is how long super-segments over IPv4 the reader takes, in
	// bytes, and lets the uplink merge so many (gro_ipv4_max_size). A flow of which longer ones
	// come, up to this or to 64 KB, the kernel's TCP puts in order itself from then on.
	SuperBytes int
}

// OrderStats counts packets since the programs were attached. A super-segment counts as one.
type OrderStats struct {
	Seen       uint64 `json:"seen"`        // all incoming packets, of all protocols
	Straight   uint64 `json:"straight"`    // of TCP in order, which went to the kernel at once
	Diverted   uint64 `json:"diverted"`    // behind a hole, which went to the reader
	Crowded    uint64 `json:"crowded"`     // of flows for which the table had no place
	PassedDead uint64 `json:"passed_dead"` // behind a hole, left to the kernel, because the reader was silent
	Missed     uint64 `json:"missed"`      // that the reader got and another program kept from tc
	Long       uint64 `json:"long"`        // behind a hole, left to the kernel, of flows with super-segments that are too long for the reader
	Strays     uint64 `json:"strays"`      // left to the kernel, because they were too far from their flow to be its sender's
	OverBudget uint64 `json:"over_budget"` // behind a hole, left to the kernel, of flows without a socket, and not of OrderConfig.Forwarded, of which the reader has had enough
	Shed       uint64 `json:"shed"`        // behind a hole, left to the kernel, because the reader had no time for them (FlowTable.Limit)
	Datagrams  uint64 `json:"datagrams"`   // of OrderConfig.Datagrams; those of a super-packet count each
}

// Order is the two programs that let the kernel have what is in order. Methods are safe for
// concurrent use, but for those of FlowTable.
type Order struct {
	program
	filter *ebpf.Program
	*FlowTable
}

var (
	errOrderClosed = errors.New("order: closed")
	orderKind      = kind{name: "order", device: "uplink", place: kernel.SteerFilter, closed: errOrderClosed, forgets: true}
)

// AttachOrder puts TCP that comes in by an uplink in order, in the network namespace of the
// calling thread, together with a reader. The reader opens a packet socket with the program
// of Filter. From it it gets the packets of flows that have a hole, and writes them to the
// kernel in order. All else goes to the kernel at once, and is not copied.
//
// The reader gets at will what belongs to a socket of this namespace, or to a connection of
// OrderConfig.Forwarded; with that it gets nothing of flows in which nobody takes part. Of all others, which
// may be forged, it gets 3,800 packets a second from each processor.
//
// Nothing is diverted before the first Beat, nor if Beat was not called for SteerPatience,
// nor when the socket is closed. Attaching again replaces the program, and also one of
// AttachSteer. It needs what AttachSteer needs, and lowers the same settings.
func AttachOrder(cfg OrderConfig) (*Order, error) {
	if n := len(cfg.Addresses); n < 1 || n > maxSteered {
		return nil, fmt.Errorf("order: Addresses are %d, must be 1 to %d", n, maxSteered)
	}
	if err := errors.Join(cfg.Datagrams.check(), checkBehind(cfg.Behind)); err != nil {
		return nil, fmt.Errorf("order: %w", err)
	}
	o := &Order{}
	if err := o.open(orderKind, cfg.Uplink, func() error { return o.attach(cfg) }); err != nil {
		return nil, err
	}
	return o, nil
}

// CanOrder says why AttachOrder would fail in any network namespace, nil if the kernel takes
// the programs.
func CanOrder() error {
	spec, err := loadOrder()
	if err != nil {
		return err
	}
	var objects struct {
		WeftSteer       *ebpf.Program `ebpf:"weft_steer"`
		WeftOrderFilter *ebpf.Program `ebpf:"weft_order_filter"`
	}
	if err := kernel.Load(spec, &objects, kernel.TCNeeds); err != nil {
		return fmt.Errorf("order: %w", err)
	}
	return errors.Join(objects.WeftSteer.Close(), objects.WeftOrderFilter.Close())
}

func (o *Order) attach(cfg OrderConfig) error {
	link, err := kernel.Uplink(o.handle, cfg.Uplink)
	if err != nil {
		return err
	}
	spec, err := loadOrder()
	if err != nil {
		return err
	}
	var random [8]byte
	rand.Read(random[:])
	seed := binary.NativeEndian.Uint64(random[:])
	longest := uint32(kernel.MaxSuper - 1)
	if cfg.SuperBytes > kernel.MaxSuper {
		longest = uint32(cfg.SuperBytes)
	}
	if err := errors.Join(setPatience(spec, SteerPatience), cfg.Datagrams.set(spec), spec.Variables["seed"].Set(seed), spec.Variables["longest"].Set(longest),
		spec.Variables["forwarding"].Set(cfg.Forwarded != nil)); err != nil {
		return err
	}
	spec.Maps[orderMapBehind].MaxEntries = uint32(max(1, len(cfg.Behind)))
	forwarded := cfg.Forwarded.share(spec)
	var objects struct {
		WeftSteer       *ebpf.Program  `ebpf:"weft_steer"`
		WeftOrderFilter *ebpf.Program  `ebpf:"weft_order_filter"`
		Behind          *ebpf.Map      `ebpf:"behind"`
		Flows           *ebpf.Map      `ebpf:"flows"`
		Ordered         *ebpf.Map      `ebpf:"ordered"`
		Ports           *ebpf.Map      `ebpf:"listed_ports"`
		Hosts           *ebpf.Map      `ebpf:"listed_hosts"`
		Counters        *ebpf.Map      `ebpf:"counters"`
		Heartbeat       *ebpf.Variable `ebpf:"heartbeat"`
		Parts           *ebpf.Variable `ebpf:"parts"`
	}
	if err := kernel.LoadOver(spec, &objects, forwarded, kernel.TCNeeds); err != nil {
		return err
	}
	defer objects.Behind.Close()
	defer objects.Ordered.Close()
	defer objects.Ports.Close()
	defer objects.Hosts.Close()
	defer objects.Flows.Close()
	o.filter = objects.WeftOrderFilter
	o.also = append(o.also, o.filter)
	if err := o.own(link, objects.WeftSteer, objects.Counters, objects.Heartbeat); err != nil {
		return err
	}
	if o.FlowTable, err = openFlowTable(objects.Flows, objects.Parts, seed); err != nil {
		return err
	}
	if err := cfg.Datagrams.put(objects.Ports, objects.Hosts); err != nil {
		return err
	}
	if err := putBehind(objects.Behind, cfg.Behind, ownBehind); err != nil {
		return err
	}
	want := kernel.Wanted{kernel.GROSize: kernel.MaxSuper}
	if n, _ := longSupers(link, cfg.SuperBytes); n > 0 {
		want[kernel.GROSize] = n
	}
	for _, a := range cfg.Addresses {
		if a = a.Unmap(); a.Is6() {
			want[kernel.GROSize6] = kernel.MaxSuper
		}
		b := a.As16()
		if err := objects.Ordered.Put(b[:], uint8(1)); err != nil {
			return fmt.Errorf("address %v: %w", a, err)
		}
	}
	return o.attachWith(want)
}

// Filter returns the descriptor of the program that the reader's socket needs
// (link.PacketConfig.FilterFD). It is open until Close.
func (o *Order) Filter() int { return o.filter.FD() }

// Close ends the diversion and detaches the program. The reader then has what was diverted
// before, and no more.
func (o *Order) Close() error {
	o.heart.end()
	return o.program.Close()
}

// Stats returns the counters.
func (o *Order) Stats() (st OrderStats, err error) {
	err = o.use(func() error {
		// The order of the enum in bpf/order.c.
		return kernel.SumCounters(o.counts, &st.Seen, &st.Straight, &st.Diverted, &st.Crowded, &st.PassedDead, &st.Missed, &st.Long, &st.Datagrams, &st.Strays, &st.OverBudget, &st.Shed)
	})
	return st, err
}
