package fabric

//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -go-package fabric -cc clang-14 -strip llvm-strip-14 -no-global-types -tags linux -target bpfel,bpfeb balance bpf/balance.c -- -O2 -g -Wall -Werror -mcpu=v3 -I../internal/kernel/bpf -idirafter /usr/include/x86_64-linux-gnu

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/vishvananda/netlink"

	"weft/internal/balance"
	"weft/internal/elephant"
	"weft/internal/kernel"
)

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
