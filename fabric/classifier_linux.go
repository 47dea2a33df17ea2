package fabric

//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -go-package fabric -cc clang-14 -strip llvm-strip-14 -no-global-types -tags linux -target bpfel,bpfeb classify bpf/classify.c -- -O2 -g -Wall -Werror -mcpu=v3 -I../internal/kernel/bpf -idirafter /usr/include/x86_64-linux-gnu

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"

	"weft/internal/balance"
	"weft/internal/classifier"
	"weft/internal/kernel"
)

// Classifier is the flow classifier of a switch with two-level tables (thesis §3.1.6). A
// program chooses ports for new flows; Step rearranges them. Without it, and when Step is 3 s
// late, host IDs choose, so its state is soft. It sees a port of the switch fail; of other
// failures the routes of the flow's table know.
//
// Methods are safe for concurrent use. Those that change the kernel must be called in the
// network namespace of OpenClassifier: the places of programs are the calling thread's.
type Classifier struct {
	mu      sync.Mutex
	h       *netlink.Handle // nil: closed
	program *kernel.PortProgram
	rule    balance.Rule
	down    []string       // names of the ports that lead down
	up      []string       // names of the ports up
	lower   []netlink.Link // of the ports that lead down, as they were found last
	table   *classifier.Table
	set     classifySettings
	begun   bool                 // the first interval
	next    time.Duration        // when the present one ends
	cursor  *ebpf.MapBatchCursor // how far flows are read at the end of an interval; nil: it is not its end
	idle    bool                 // there may be more idle flows
	stats   ClassifierStats

	keys   []classifyKey // Step's, for reading
	states []classifyState
}

// The program's structures.
type (
	classifyKey   struct{ Src, Dst [4]byte }
	classifyState struct {
		Port, _ uint32
		Bytes   uint64
	}
	classifyLoad struct {
		Bytes   uint64
		Dead, _ uint32
	}
	classifySettings struct {
		Below, Mask [4]byte
		Ports, _    uint32
		Until       uint64
	}
)

func (k classifyKey) flow() classifier.Flow {
	return classifier.Flow{Src: netip.AddrFrom4(k.Src), Dst: netip.AddrFrom4(k.Dst)}
}

func keyOf(f classifier.Flow) classifyKey { return classifyKey{f.Src.As4(), f.Dst.As4()} }

var errClassifierClosed = errors.New("classifier: closed")

// OpenClassifier attaches the program to the ports of a switch that lead down, in the network
// namespace of the calling thread, in place of one that a crash has left. The plan must be
// applied. A port up without a device counts as dead, and one down is left out. The rule is
// classifier, with parameters behind a colon. It needs CAP_NET_ADMIN and CAP_BPF.
func OpenClassifier(p NodePlan, rule string) (*Classifier, error) {
	c, err := newClassifier(p, rule)
	if err == nil {
		err = c.attach()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("classifier: %w", err), c.Detach())
	}
	return c, nil
}

// InheritClassifier opens what OpenClassifier has attached from the result of
// Classifier.Descriptors, with the flows that its program knows. It needs CAP_NET_ADMIN to
// repair it, and nothing else.
func InheritClassifier(p NodePlan, rule, descriptors string) (*Classifier, error) {
	c, err := newClassifier(p, rule)
	if err == nil {
		c.program, err = kernel.OpenDescriptors(kernel.ClassifyFilter, strings.Fields(descriptors))
	}
	if err == nil && c.program == nil {
		err = errors.New("no descriptors were passed on")
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("classifier: %w", err), c.Close())
	}
	return c, nil
}

// newClassifier has no program. It is not nil, and can be closed, after an error, too.
func newClassifier(p NodePlan, rule string) (c *Classifier, err error) {
	c = &Classifier{}
	if c.rule, err = classifierRule(rule); err != nil {
		return c, err
	}
	names, below, err := p.lowerPorts()
	if err != nil {
		return c, err
	}
	c.down = names
	for _, g := range p.Suffixes {
		c.up = append(c.up, g.Port)
	}
	if c.table, err = classifier.New(len(c.up), c.rule.Moves); err != nil {
		return c, err
	}
	c.set = classifySettings{Below: below.Addr().As4(), Ports: uint32(len(c.up))}
	binary.BigEndian.PutUint32(c.set.Mask[:], ^uint32(0)<<(32-below.Bits()))
	c.h, err = netlink.NewHandle(kernel.Families...)
	return c, kernel.Explain(err)
}

func (c *Classifier) attach() error {
	if err := c.findPorts(); err != nil {
		return err
	}
	if len(c.lower) == 0 {
		return fmt.Errorf("none of the ports %s that lead down is in this network namespace", strings.Join(c.down, ", "))
	}
	spec, err := loadClassify()
	if err != nil {
		return err
	}
	var o struct {
		Prog     *ebpf.Program `ebpf:"weft_classify"`
		Flows    *ebpf.Map     `ebpf:"flows"`
		Loads    *ebpf.Map     `ebpf:"loads"`
		Settings *ebpf.Map     `ebpf:"settings"`
		Counters *ebpf.Map     `ebpf:"counters"`
	}
	if err := kernel.Load(spec, &o, kernel.TCNeeds); err != nil {
		return err
	}
	c.program, err = kernel.OpenPortProgram(kernel.ClassifyFilter, o.Prog, map[string]*ebpf.Map{
		classifyMapFlows: o.Flows, classifyMapLoads: o.Loads, classifyMapSettings: o.Settings, kernel.CountersMap: o.Counters})
	if err != nil {
		return err
	}
	if err := errors.Join(c.tellLoads(), c.beat()); err != nil {
		return err
	}
	return c.program.Attach(c.h, c.lower)
}

// Descriptors returns new file descriptors, as text, for a program that this process
// executes: see InheritClassifier.
func (c *Classifier) Descriptors() (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.h == nil {
		return "", errClassifierClosed
	}
	words, err := c.program.Descriptors()
	return strings.Join(words, " "), err
}

// Stats returns what has been counted.
func (c *Classifier) Stats() (ClassifierStats, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.stats
	s.Rule, s.Known = c.rule.String(), c.table.Flows()
	if c.h == nil {
		return s, errClassifierClosed
	}
	return s, c.program.Counters(s.sums()...)
}

// Close lets go of the program, which stays attached. Without Step host IDs choose again 3 s
// later.
func (c *Classifier) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.close()
}

func (c *Classifier) close() error {
	if c.h == nil {
		return nil
	}
	c.h.Close()
	c.h = nil
	return c.program.Close()
}

// Detach removes the program, and closes. Host IDs choose again.
func (c *Classifier) Detach() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.h == nil {
		return nil
	}
	err := c.findPorts()
	_, detach := kernel.ClassifyFilter.DetachAll(c.h, c.lower)
	return errors.Join(err, detach, c.close())
}

// DetachClassifier removes the program from ports of the network namespace of the calling
// thread, whoever attached it, and returns how many ports had it.
func DetachClassifier(ports []string) (removed int, err error) {
	h, err := netlink.NewHandle(kernel.Families...)
	if err != nil {
		return 0, kernel.Explain(err)
	}
	defer h.Close()
	links, err := kernel.Dumped(h.LinkList)
	if err != nil {
		return 0, kernel.Explain(fmt.Errorf("classifier: list the links: %w", err))
	}
	removed, err = kernel.ClassifyFilter.DetachAll(h, named(links, ports))
	if err != nil {
		return removed, fmt.Errorf("classifier: %w", err)
	}
	return removed, nil
}
