package fabric

//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -go-package fabric -cc clang-14 -strip llvm-strip-14 -no-global-types -tags linux -target bpfel,bpfeb balance bpf/balance.c -- -O2 -g -Wall -Werror -mcpu=v3 -I../internal/kernel/bpf -idirafter /usr/include/x86_64-linux-gnu

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"

	"weft/internal/balance"
	"weft/internal/elephant"
	"weft/internal/kernel"
)

const balanceNeeds = "eBPF: tc programs with locks and atomics as of Linux 5.12 are needed (kernel options BPF_SYSCALL, NET_CLS_BPF)"

// Balance is what balances a switch's packets over its next hops. Methods are safe for
// concurrent use.
type Balance struct {
	mu     sync.Mutex
	handle *netlink.Handle // nil: closed
	rule   balance.Rule
	duty   elephant.Duty
	pins   []PortPin                                     // of SetPins
	obeyed *kernel.Mirror[elephant.Key, kernel.PinValue] // the program's pins; nil: not known yet
	ports  []MeterPort
	routes []Route        // of the configuration
	links  []netlink.Link // of the ports, as Repair has found them
	in     *kernel.PortProgram
	out    *kernel.PortProgram
	queued map[string]int // interface indexes of the ports that have a queue
	filled filled
	leaf   LeafConfig // with conga and luopan
	known  knownLeaf
	stale  bool // the paths in the kernel are not those of leaf.Topology
}

var errBalanceClosed = errors.New("balance: closed")

// AttachBalance has packets that come in by ports of the calling thread's network namespace
// balanced by a rule, which must be one that a program carries out. The programs stay when
// the process ends: see DetachBalance. Attaching again replaces them, misses no packet, and
// starts the counters anew.
//
// It sets net.ipv4.fib_multipath_hash_policy and the same of net.ipv6 to 1, by which the
// kernel heeds the hash that a program gives a packet. The former values are kept with the
// program, so that DetachBalance restores them after a crash, too.
//
// After an error another's programs may still be attached: see DetachBalance. A port of
// which drill cannot know the rate is no error here: it counts as empty, and Repair tells
// of it.
//
// It needs CAP_NET_ADMIN, CAP_BPF and a writable /proc/sys.
func AttachBalance(cfg BalanceConfig) (*Balance, error) {
	b := &Balance{queued: make(map[string]int)}
	if err := b.attach(cfg); err != nil {
		b.Close()
		return nil, fmt.Errorf("balance: %w", err)
	}
	return b, nil
}

func (b *Balance) attach(cfg BalanceConfig) error {
	if err := b.open(cfg); err != nil {
		return err
	}
	return b.begin()
}

// begin attaches the programs to the ports that open has found.
func (b *Balance) begin() error {
	former, err := formerPolicy(b.handle, b.links)
	if err != nil {
		return err
	}
	if err := b.load(); err != nil {
		return err
	}
	b.fillQueues() // Repair tells of ports without one
	if err := errors.Join(b.group(b.routes), b.refresh()); err != nil {
		return err
	}
	if former, err = b.keepPolicy(former); err != nil {
		return err
	}
	err = b.out.Attach(b.handle, b.links)
	if err == nil {
		err = b.in.Attach(b.handle, b.links)
	}
	if err == nil {
		err = setPolicy()
	}
	if err != nil {
		_, detach := detachBalance(b.handle, b.links, former)
		return errors.Join(err, detach)
	}
	return nil
}

// open reads the configuration and finds the ports.
func (b *Balance) open(cfg BalanceConfig) (err error) {
	if b.rule, err = cfg.check(); err != nil {
		return err
	}
	if b.handle, err = netlink.NewHandle(kernel.Families...); err != nil {
		return kernel.Explain(err)
	}
	b.ports, b.routes, b.leaf, b.duty = cfg.Ports, cfg.Routes, cfg.Leaf, cfg.Elephants
	if err := b.find(); err != nil {
		return err
	}
	if len(b.links) == 0 {
		return fmt.Errorf("none of the ports %s to %s is in this network namespace", b.ports[0].Name, b.ports[len(b.ports)-1].Name)
	}
	return nil
}

// load puts the programs into the kernel.
func (b *Balance) load() error {
	if b.rule.AtLeaf() {
		return b.loadLeaf()
	}
	spec, err := balanceSpec(b.rule, rand.Uint64())
	if err == nil {
		err = kernel.SetElephants(spec, b.duty)
	}
	if err != nil {
		return err
	}
	var o struct {
		In           *ebpf.Program `ebpf:"weft_balance"`
		Out          *ebpf.Program `ebpf:"weft_queue"`
		Counters     *ebpf.Map     `ebpf:"counters"`
		Destinations *ebpf.Map     `ebpf:"destinations"`
		Six          *ebpf.Map     `ebpf:"destinations6"`
		Sets         *ebpf.Map     `ebpf:"sets"`
		Queues       *ebpf.Map     `ebpf:"queues"`
		Flows        *ebpf.Map     `ebpf:"elephant_flows"`
		Pins         *ebpf.Map     `ebpf:"elephant_pins"`
	}
	if err := kernel.Load(spec, &o, balanceNeeds); err != nil {
		return err
	}
	maps := map[string]*ebpf.Map{kernel.CountersMap: o.Counters, balanceMapDestinations: o.Destinations,
		balanceMapDestinations6: o.Six, balanceMapSets: o.Sets, balanceMapQueues: o.Queues,
		kernel.ElephantFlowsMap: o.Flows, kernel.ElephantPinsMap: o.Pins}
	former, err := bindFormer(o.In)
	if err == nil {
		maps[formerMap] = former
	}
	if b.rule.Kind == balance.DRILL && err == nil {
		if maps[groupsMap], err = bindGroups(o.In); err != nil {
			delete(maps, groupsMap)
		}
	}
	var errs [2]error
	b.in, errs[0] = kernel.OpenPortProgram(kernel.BalanceFilter, o.In, maps)
	b.out, errs[1] = kernel.OpenPortProgram(kernel.QueueFilter, o.Out, nil)
	return errors.Join(err, errs[0], errs[1])
}

// balanceSpec is the programs as a rule needs them.
func balanceSpec(r balance.Rule, seed uint64) (*ebpf.CollectionSpec, error) {
	spec, err := loadBalance()
	if err != nil {
		return nil, err
	}
	for _, m := range []struct {
		name string
		of   balance.Kind
	}{{balanceMapPairs, balance.DRB}, {balanceMapFlowlets, balance.LetFlow}} {
		if r.Kind != m.of {
			spec.Maps[m.name].MaxEntries = 1
		}
	}
	return spec, errors.Join(
		spec.Variables[balanceVarRule].Set(uint32(r.Kind)),
		spec.Variables[balanceVarSamples].Set(uint32(r.Samples)),
		spec.Variables[balanceVarMemory].Set(uint32(r.Memory)),
		spec.Variables[balanceVarGap].Set(uint64(r.Gap)),
		spec.Variables[balanceVarSeed].Set(seed))
}

// InheritBalance opens what AttachBalance has attached from the result of
// Balance.Descriptors. It needs CAP_NET_ADMIN to repair it, and nothing else.
func InheritBalance(descriptors string, cfg BalanceConfig) (*Balance, error) {
	b := &Balance{queued: make(map[string]int)}
	words := strings.Fields(descriptors)
	err := b.open(cfg)
	if err == nil {
		b.in, err = kernel.OpenDescriptors(kernel.BalanceFilter, words)
	}
	if err == nil {
		b.out, err = kernel.OpenDescriptors(kernel.QueueFilter, words)
	}
	if err == nil && (b.in == nil || b.out == nil) {
		err = errors.New("no descriptors were passed on")
	}
	if err != nil {
		b.Close()
		return nil, fmt.Errorf("balance: %w", err)
	}
	b.fillQueues() // Repair tells of ports without one
	return b, nil
}

// Descriptors returns new file descriptors, as text, for a program that this process
// executes: see InheritBalance.
func (b *Balance) Descriptors() (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.handle == nil {
		return "", errBalanceClosed
	}
	words, err := b.in.Descriptors()
	more, err2 := b.out.Descriptors()
	return strings.Join(append(words, more...), " "), errors.Join(err, err2)
}

// Close lets go of the programs, which stay attached.
func (b *Balance) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.close()
}

func (b *Balance) close() error {
	if b.handle == nil {
		return nil
	}
	b.handle.Close()
	b.handle = nil
	return errors.Join(b.in.Close(), b.out.Close())
}

// Detach is DetachBalance for all ports, and Close.
func (b *Balance) Detach() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.handle == nil {
		return nil
	}
	former, err := readFormer(b.in.Maps[formerMap])
	_, err2 := detachBalance(b.handle, b.links, former)
	return errors.Join(err, err2, b.close())
}

// DetachBalance removes the programs from ports of the network namespace of the calling
// thread, whoever attached them, and restores the kernel's setting. It returns how many
// ports had one. It goes on after an error, as far as it can.
func DetachBalance(ports []string) (removed int, err error) {
	h, err := netlink.NewHandle(kernel.Families...)
	if err != nil {
		return 0, kernel.Explain(err)
	}
	defer h.Close()
	links, err := kernel.Dumped(h.LinkList)
	if err != nil {
		return 0, kernel.Explain(fmt.Errorf("balance: list the links: %w", err))
	}
	links = deleted(links, func(l netlink.Link) bool { return !slices.Contains(ports, l.Attrs().Name) })
	former, err := formerPolicy(h, links)
	removed, err2 := detachBalance(h, links, former)
	if err = errors.Join(err, err2); err != nil {
		return removed, fmt.Errorf("balance: %w", err)
	}
	return removed, nil
}

// detachBalance restores the settings before it removes the programs, which know the former
// ones, so that a crash in between loses nothing. It needs no privilege but CAP_NET_ADMIN if
// the programs are this process's.
func detachBalance(h *netlink.Handle, links []netlink.Link, former policies) (removed int, err error) {
	err = restorePolicy(former)
	removed, err2 := kernel.BalanceFilter.DetachAll(h, links)
	n, err3 := kernel.QueueFilter.DetachAll(h, links)
	return max(removed, n), errors.Join(err, err2, err3)
}

// Stats returns what has been counted since the programs were attached.
func (b *Balance) Stats() (s BalanceStats, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s = BalanceStats{Rule: b.rule.String(), Destinations: b.filled.destinations, LeftOut: b.filled.leftOut, Grouped: b.filled.grouped}
	if b.handle == nil {
		return s, errBalanceClosed
	}
	if b.rule.AtLeaf() {
		return b.leafStats(s)
	}
	return s, b.in.Counters(s.sums()...)
}

// ReadBalance returns what the programs at ports have counted, whoever attached them; nil if
// there are none. The rule is left out. h is of the calling thread's network namespace.
func ReadBalance(h *netlink.Handle, ports []netlink.Link) (*BalanceStats, error) {
	var s BalanceStats
	ok, err := kernel.BalanceFilter.Counters(h, ports, s.sums()...)
	if err != nil || !ok {
		return nil, err
	}
	if leaf, err := readLeaf(h, ports, &s); leaf || err != nil {
		return &s, err
	}
	routes, err := hopsByPrefix(h, nil)
	if err != nil {
		return nil, err
	}
	_, _, f := tablesOf(routes, make([]balance.Set, maxBalanceSets))
	s.Destinations, s.LeftOut = f.destinations, f.leftOut
	return &s, nil
}
