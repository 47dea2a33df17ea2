package fabric

//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -go-package fabric -cc clang-14 -strip llvm-strip-14 -no-global-types -tags linux -target bpfel,bpfeb classify bpf/classify.c -- -O2 -g -Wall -Werror -mcpu=v3 -I../internal/kernel/bpf -idirafter /usr/include/x86_64-linux-gnu

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"

	"weft/internal/classifier"
	"weft/internal/kernel"
)

// Classifier is the flow classifier of a switch with two-level tables (thesis §3.1.6). A
// program chooses ports for new flows; Step rearranges them. Without it host IDs choose, so
// its state is soft. It sees a port of the switch fail; of other failures the routes of the
// flow's table know. Its methods must be called by one goroutine at a time.
type Classifier struct {
	h       *netlink.Handle
	program *kernel.PortProgram
	down    []string       // names of the ports that lead down
	up      []string       // names of the ports up
	lower   []netlink.Link // of the ports that lead down, as Step has found them
	table   *classifier.Table
	every   time.Duration
	next    time.Duration
	stats   ClassifierStats
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
		Ports       uint32
	}
)

func (k classifyKey) flow() classifier.Flow {
	return classifier.Flow{Src: netip.AddrFrom4(k.Src), Dst: netip.AddrFrom4(k.Dst)}
}

func keyOf(f classifier.Flow) classifyKey { return classifyKey{f.Src.As4(), f.Dst.As4()} }

// OpenClassifier attaches the program to the ports of a switch that lead down, in the network
// namespace of the calling thread, in place of one that a crash has left. The plan must be
// applied. every is the time between rearrangements, 0 for the thesis' second. It needs
// CAP_NET_ADMIN and CAP_BPF.
func OpenClassifier(p NodePlan, every time.Duration) (*Classifier, error) {
	names, below, err := p.lowerPorts()
	if err != nil {
		return nil, fmt.Errorf("classifier: %w", err)
	}
	if every == 0 {
		every = classifier.DefaultInterval
	}
	c := &Classifier{every: every, down: names}
	for _, g := range p.Suffixes {
		c.up = append(c.up, g.Port)
	}
	if c.table, err = classifier.New(len(c.up)); err != nil {
		return nil, err
	}
	if c.h, err = netlink.NewHandle(kernel.Families...); err != nil {
		return nil, kernel.Explain(err)
	}
	if err := c.attach(below); err != nil {
		return nil, errors.Join(fmt.Errorf("classifier: %w", err), c.Close())
	}
	return c, nil
}

func (c *Classifier) attach(below netip.Prefix) error {
	if _, err := kernel.Links(c.h, c.up); err != nil {
		return err
	}
	lower, err := kernel.Links(c.h, c.down)
	if err != nil {
		return err
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
	c.program, err = kernel.OpenPortProgram(kernel.ClassifyFilter, o.Prog,
		map[string]*ebpf.Map{"flows": o.Flows, "loads": o.Loads, "settings": o.Settings, kernel.CountersMap: o.Counters})
	if err != nil {
		return err
	}
	set := classifySettings{Below: below.Addr().As4(), Ports: uint32(len(c.up))}
	binary.BigEndian.PutUint32(set.Mask[:], ^uint32(0)<<(32-below.Bits()))
	if err := o.Settings.Put(uint32(0), set); err != nil {
		return kernel.Explain(err)
	}
	return c.program.Attach(c.h, lower)
}

// Step reads what flows have sent, moves some and tells the program. Call it every so often;
// it does nothing until it is time. now counts from any moment.
func (c *Classifier) Step(now time.Duration) error {
	if now < c.next {
		return nil
	}
	c.next = now + c.every
	failed := c.findPorts()
	_, err := c.program.Repair(c.h, c.lower)
	failed = errors.Join(failed, err)
	flows := c.program.Maps["flows"]
	var key classifyKey
	var state classifyState
	list := flows.Iterate()
	for list.Next(&key, &state) {
		c.table.Observe(key.flow(), int(state.Port), state.Bytes, now)
	}
	failed = errors.Join(failed, kernel.Explain(list.Err()))
	moves, idle := c.table.Rearrange(now)
	for _, f := range idle {
		c.stats.Idle++
		failed = errors.Join(failed, gone(flows.Delete(keyOf(f))))
	}
	for _, m := range moves {
		key := keyOf(m.Flow)
		if err := flows.Lookup(key, &state); err == nil {
			state.Port = uint32(m.To)
			failed = errors.Join(failed, gone(flows.Update(key, state, ebpf.UpdateExist)))
			c.stats.Moved++
		}
	}
	return errors.Join(failed, c.tellLoads())
}

// findPorts finds the devices of the ports that lead down, which may be new ones, and says
// which ports up are dead.
func (c *Classifier) findPorts() error {
	all, err := kernel.Dumped(c.h.LinkList)
	if err != nil {
		return kernel.Explain(fmt.Errorf("list the links: %w", err))
	}
	c.lower = nil
	live := make(map[string]bool)
	for _, link := range all {
		a := link.Attrs()
		if slices.Contains(c.down, a.Name) {
			c.lower = append(c.lower, link)
		}
		live[a.Name] = a.Flags&net.FlagUp != 0 && a.OperState != netlink.OperDown && a.OperState != netlink.OperLowerLayerDown
	}
	for i, name := range c.up {
		c.table.SetDead(i, !live[name])
	}
	return nil
}

// tellLoads says what ports have carried, which the choice for new flows goes by.
func (c *Classifier) tellLoads() (failed error) {
	for i := range c.up {
		load := classifyLoad{Bytes: c.table.Load(i)}
		if c.table.Dead(i) {
			load.Dead = 1
		}
		failed = errors.Join(failed, c.program.Maps["loads"].Put(uint32(i), load))
	}
	return kernel.Explain(failed)
}

// gone ignores that a flow is not there any more.
func gone(err error) error {
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		return nil
	}
	return kernel.Explain(err)
}

// Stats returns what has been counted.
func (c *Classifier) Stats() (ClassifierStats, error) {
	s := c.stats
	s.Known = c.table.Flows()
	return s, c.program.Counters(s.sums()...)
}

// Close removes the program. Host IDs choose again. It must be called in the network
// namespace of OpenClassifier, and so must Step: the places of programs are the calling
// thread's.
func (c *Classifier) Close() error {
	defer c.h.Close()
	err := c.findPorts()
	_, detach := kernel.ClassifyFilter.DetachAll(c.h, c.lower)
	return errors.Join(err, detach, c.program.Close())
}
