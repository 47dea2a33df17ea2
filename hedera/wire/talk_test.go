package wire

import (
	"bytes"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"weft/flowcell"
	"weft/topoupdate"
)

var (
	hostAddr   = netip.MustParseAddr("10.0.0.2")
	hostAt     = netip.MustParseAddrPort("10.0.0.2:40000")
	serverAt   = []netip.AddrPort{netip.MustParseAddrPort("10.9.0.1:9341"), netip.MustParseAddrPort("10.9.0.2:9341")}
	secret     = topoupdate.Keys{List: []topoupdate.Key{{ID: 1, Secret: bytes.Repeat([]byte{7}, 32)}}}
	otherKey   = topoupdate.Keys{List: []topoupdate.Key{{ID: 1, Secret: bytes.Repeat([]byte{8}, 32)}}}
	via        = netip.MustParseAddr("10.4.1.1")
	somePlaces = []Placement{{Tuple: flowOf(1, true).Tuple, Path: 3, Via: via, For: 3 * time.Second},
		{Tuple: flowOf(2, false).Tuple, Path: 65535, Via: netip.MustParseAddr("fd00::1")}}
)

func flowOf(n int, six bool) Flow {
	f := Flow{Rate: uint64(n) * 1000, Tuple: flowcell.FiveTuple{Proto: flowcell.ProtoTCP, SrcPort: uint16(n), DstPort: 80,
		Src: flowcell.AddressFrom(hostAddr), Dst: flowcell.AddressFrom(netip.MustParseAddr("10.3.1.2"))}}
	if six {
		f.Tuple.Src, f.Tuple.Dst = flowcell.AddressFrom(netip.MustParseAddr("fd00::2")), flowcell.AddressFrom(netip.MustParseAddr("fd00::3"))
	}
	return f
}

// talk is a node and two servers, and what they have said.
type talk struct {
	t     *testing.T
	now   time.Duration
	rng   *rand.Rand
	node  *Node
	desks []*Desk
	said  []said
	got   []Flow
	told  []Placement
}

type said struct {
	b  []byte
	to netip.AddrPort // a server, or the node
	by netip.AddrPort
}

func newTalk(t *testing.T, nodeKeys, serverKeys topoupdate.Keys) *talk {
	t.Helper()
	c := &talk{t: t, now: time.Second, rng: rand.New(rand.NewPCG(1, 1))}
	for range serverAt {
		c.desks = append(c.desks, c.newDesk(serverKeys))
	}
	c.newNode(nodeKeys)
	return c
}

func (c *talk) newNode(k topoupdate.Keys) {
	c.t.Helper()
	var err error
	c.node, err = NewNode(NodeConfig{Fabric: 5, Address: hostAddr, Servers: serverAt, Keys: k, Random: c.rng.Uint64}, c.now)
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *talk) newDesk(k topoupdate.Keys) *Desk {
	c.t.Helper()
	d, err := NewDesk(DeskConfig{Fabric: 5, Keys: k, Known: func(a netip.Addr) bool { return a == hostAddr }, Random: c.rng.Uint64})
	if err != nil {
		c.t.Fatal(err)
	}
	return d
}

// from returns a function that sends for one side.
func (c *talk) from(by netip.AddrPort) func(netip.AddrPort, []byte) {
	return func(to netip.AddrPort, b []byte) { c.said = append(c.said, said{bytes.Clone(b), to, by}) }
}

// deliver delivers what was said, and what is said to that.
func (c *talk) deliver() (all []said) {
	for len(c.said) > 0 {
		m := c.said[0]
		c.said = c.said[1:]
		all = append(all, m)
		c.hear(m)
	}
	return all
}

func (c *talk) hear(m said) error {
	if m.to == hostAt {
		list, err := c.node.Receive(m.b, m.by, c.now)
		c.told = append(c.told, list...)
		return err
	}
	for i, d := range c.desks {
		if serverAt[i] == m.to {
			_, flows, err := d.Receive(m.b, m.by, c.now, c.from(serverAt[i]))
			c.got = append(c.got, flows...)
			return err
		}
	}
	return nil
}

// poll lets a hello's time pass.
func (c *talk) poll() []said {
	c.now += HelloEvery
	c.node.Poll(c.now, c.from(hostAt))
	return c.deliver()
}

func (c *talk) report(flows ...Flow) bool {
	return c.node.Report(Report{flows}, c.now, c.from(hostAt))
}
