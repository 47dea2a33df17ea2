package fabric

//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -go-package fabric -cc clang-14 -strip llvm-strip-14 -no-global-types -tags linux -target bpfel,bpfeb classify bpf/classify.c -- -O2 -g -Wall -Werror -mcpu=v3 -I../internal/kernel/bpf -idirafter /usr/include/x86_64-linux-gnu

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
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
	lower   []netlink.Link
	upper   []int // interface indexes of the ports up
	table   *classifier.Table
	every   time.Duration
	next    time.Duration
	known   map[classifyKey]knownFlow
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

// knownFlow is what Step found the last time.
type knownFlow struct {
	bytes   uint64
	changed time.Duration
}

func (k classifyKey) flow() classifier.Flow {
	return classifier.Flow{Src: netip.AddrFrom4(k.Src), Dst: netip.AddrFrom4(k.Dst)}
}

// OpenClassifier attaches the program to the ports of a switch that lead down, in the network
// namespace of the calling thread, to which it stays bound. The plan must be applied. every
// is the time between rearrangements, 0 for the thesis' second. It needs CAP_NET_ADMIN and
// CAP_BPF.
func OpenClassifier(p NodePlan, every time.Duration) (c *Classifier, err error) {
	names, below, err := p.lowerPorts()
	if err != nil {
		return nil, fmt.Errorf("classifier: %w", err)
	}
	if every == 0 {
		every = classifier.DefaultInterval
	}
	c = &Classifier{every: every, known: make(map[classifyKey]knownFlow)}
	if c.table, err = classifier.New(classifier.Config{Ports: len(p.Suffixes), Interval: every}); err != nil {
		return nil, err
	}
	if c.h, err = netlink.NewHandle(kernel.Families...); err != nil {
		return nil, kernel.Explain(err)
	}
	defer func() {
		if err != nil {
			c.h.Close()
		}
	}()
	if c.lower, err = kernel.Links(c.h, names); err != nil {
		return nil, err
	}
	for _, g := range p.Suffixes {
		links, err := kernel.Links(c.h, []string{g.Port})
		if err != nil {
			return nil, err
		}
		c.upper = append(c.upper, links[0].Attrs().Index)
	}
	return c, c.attach(below)
}

func (c *Classifier) attach(below netip.Prefix) error {
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
	set := classifySettings{Below: below.Addr().As4(), Ports: uint32(len(c.upper))}
	binary.BigEndian.PutUint32(set.Mask[:], ^uint32(0)<<(32-below.Bits()))
	if err := o.Settings.Put(uint32(0), set); err != nil {
		return errors.Join(kernel.Explain(err), c.program.Close())
	}
	if _, err := c.program.Repair(c.h, c.lower); err != nil {
		return errors.Join(err, c.program.Close())
	}
	return nil
}

// Step reads what flows have sent, moves some and tells the program. Call it every so often;
// it does nothing until it is time. now counts from any moment.
func (c *Classifier) Step(now time.Duration) error {
	if now < c.next {
		return nil
	}
	c.next = now + c.every
	_, failed := c.program.Repair(c.h, c.lower)
	for i, index := range c.upper {
		link, err := c.h.LinkByIndex(index)
		c.table.SetDead(i, err != nil || link.Attrs().Flags&net.FlagUp == 0 || link.Attrs().OperState == netlink.OperDown || link.Attrs().OperState == netlink.OperLowerLayerDown)
	}
	flows := c.program.Maps["flows"]
	var key classifyKey
	var state classifyState
	var idle []classifyKey
	for list := flows.Iterate(); list.Next(&key, &state); {
		was, ok := c.known[key]
		if state.Bytes < was.bytes { // it was moved while the program counted
			was.bytes = state.Bytes
		}
		c.table.Observe(key.flow(), int(state.Port), state.Bytes-was.bytes, now)
		if !ok || state.Bytes != was.bytes {
			c.known[key] = knownFlow{state.Bytes, now}
		} else if now-was.changed >= classifier.DefaultIdle {
			idle = append(idle, key)
		}
	}
	for _, key := range idle {
		delete(c.known, key)
		c.stats.Idle++
		failed = errors.Join(failed, gone(flows.Delete(key)))
	}
	for _, m := range c.table.Rearrange(now) {
		key := classifyKey{m.Flow.Src.As4(), m.Flow.Dst.As4()}
		if err := flows.Lookup(key, &state); err == nil {
			state.Port = uint32(m.To)
			failed = errors.Join(failed, gone(flows.Update(key, state, ebpf.UpdateExist)))
			c.stats.Moved++
		}
	}
	return errors.Join(failed, c.tellLoads())
}

// tellLoads says what ports have carried, which the choice for new flows goes by.
func (c *Classifier) tellLoads() (failed error) {
	for i := range c.upper {
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
	s.Known = len(c.known)
	return s, c.program.Counters(s.sums()...)
}

// Close removes the program. Host IDs choose again.
func (c *Classifier) Close() error {
	defer c.h.Close()
	_, err := kernel.ClassifyFilter.DetachAll(c.h, c.lower)
	return errors.Join(err, c.program.Close())
}
