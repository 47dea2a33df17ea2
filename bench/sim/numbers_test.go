package sim

import (
	"testing"
	"time"

	"weft/bench/sim/spray"
	"weft/bench/sim/tcp"
	"weft/flowcell"
	"weft/policy"
	"weft/resequencer"
	"weft/topology"
)

// cellsSeen is switches, and what they have done with hosts' flowcells.
type cellsSeen struct {
	spray.Switch
	t     *testing.T
	bytes int               // of a flowcell
	first int32             // port behind those of hosts
	early int               // flowcells that began before the last was full
	ports map[cellAt]int    // where a flowcell goes on
	cells map[flowAt]inCell // under way, at edge switches
	used  map[flowAt]uint64 // ports, a bit each
}

type flowAt struct {
	sw   topology.NodeID
	hash uint64
}

type cellAt struct {
	flowAt
	cell uint16
}

// inCell is the flowcell under way.
type inCell struct {
	number  flowcell.Number
	payload int
	at      time.Duration // of the latest packet
}

func (c *cellsSeen) Up(sw topology.NodeID, in int32, p *spray.Packet, now time.Duration) int {
	port := c.Switch.Up(sw, in, p, now)
	payload := int(p.Bytes) - 40
	if p.Numbered != (payload > 0) {
		c.t.Fatalf("a packet of %d bytes is numbered: %v", p.Bytes, p.Numbered)
	}
	if !p.Numbered {
		return port
	}
	at := flowAt{sw, p.Hash}
	c.used[at] |= 1 << port
	cell := cellAt{at, p.Number.Cell()}
	if was, ok := c.ports[cell]; ok && was != port {
		c.t.Fatalf("switch %d, flow %x: flowcell %d goes by port %d and by %d", sw, p.Hash, cell.cell, was, port)
	}
	c.ports[cell] = port
	if in >= c.first {
		return port
	}
	// At the edge all packets pass, in the order in which they were sent.
	was, known := c.cells[at]
	switch {
	case known && p.Number == was.number+1:
		payload += was.payload
		if payload > c.bytes {
			c.t.Fatalf("switch %d, flow %x: %d bytes in flowcell %d", sw, p.Hash, payload, cell.cell)
		}
	case known && p.Number != flowcell.MakeNumber(was.number.Cell()+1, 0):
		c.t.Fatalf("switch %d, flow %x: %d.%d after %d.%d", sw, p.Hash, cell.cell, p.Number.Index(), was.number.Cell(), was.number.Index())
	case known && was.payload+payload <= c.bytes:
		c.early++
		if pause := now - was.at; pause < time.Millisecond { // 5 behind the host's queue
			c.t.Fatalf("switch %d, flow %x: flowcell %d begins after %d bytes and %v", sw, p.Hash, cell.cell, was.payload, pause)
		}
	}
	c.cells[at] = inCell{p.Number, payload, now}
	return port
}

// Where switches choose for flowcells, hosts number them, each takes one path, through
// losses and timeouts, and the resequencer believes it and tells losses at once.
func TestRun_switchesGoByHostsFlowcells(t *testing.T) {
	const bytes = 16 << 10
	for _, name := range []string{"switch-local", "switch-luopan"} {
		topo := parse(t, "fat-tree:k=4"+rates)
		c := drbSetting(topo, name)
		c.Options = policy.Options{FlowcellBytes: bytes}
		c.Warmup, c.Duration = 0, 10*time.Second
		c.Queues = []Queue{{Bytes: 10_000}}
		c.Resequencer = &resequencer.Config{}
		c.TCP = tcp.Config{RTOMin: 10 * time.Millisecond}
		c.Workload = permutation(topo, 7, 3_000_000)
		s, err := newSimulation(c)
		if err != nil {
			t.Fatal(err)
		}
		seen := &cellsSeen{s.switches, t, bytes, up(int32(topo.NumHosts())), 0, map[cellAt]int{}, map[flowAt]inCell{}, map[flowAt]uint64{}}
		s.switches = seen
		s.run()
		r := s.result()
		t.Logf("%s: %d flowcells, %d early, %d sent again, %d timeouts, %+v", name, len(seen.ports), seen.early, r.Retransmits, r.Timeouts, r.Resequencer)
		if r.Flows != 16 || r.Retransmits == 0 || r.Timeouts == 0 {
			t.Errorf("%s: %d flows, %d sent again, %d timeouts: the test tests little", name, r.Flows, r.Retransmits, r.Timeouts)
		}
		if seen.early == 0 {
			t.Errorf("%s: after no timeout a flowcell begins", name)
		}
		for at, ports := range seen.used {
			if ports&(ports-1) == 0 {
				t.Errorf("%s, switch %d: a flow of 3 MB goes by one port", name, at.sw)
			}
		}
		if r.Resequencer.FlowsNumbered != 16 || r.Resequencer.FlowsUnnumbered > 0 || r.Resequencer.Loss == 0 {
			t.Errorf("%s: %d of 16 flows are found to number, %d not to; %d packets are told at once to be behind a loss",
				name, r.Resequencer.FlowsNumbered, r.Resequencer.FlowsUnnumbered, r.Resequencer.Loss)
		}
	}
}
