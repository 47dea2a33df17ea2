package dataplane

import (
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"weft/encap"
	"weft/flowcell"
	"weft/policy"
	"weft/topology"
)

// A pair that needs none of the links that fail goes on as if nothing had
// happened; one that needs them visits what is left evenly.
func TestSetTopology_unaffectedPairsKeepTheirPosition(t *testing.T) {
	for _, name := range policy.Names() {
		if p, _ := policy.New(name, policy.Options{}); p.Aware != policy.Oblivious {
			continue // what they draw depends on what was drawn for others
		}
		e, calm := testEgress(t, fatTree, name), testEgress(t, fatTree, name)
		packets := func(host string) []byte {
			b := dataPacket(7, 1448)
			to := fatTree.EmbeddedAddr(node(t, fatTree, host)).As4()
			copy(b[16:], to[:])
			return fixed(b)
		}
		near, far, other := packets("h0.1.2"), packets("h3.0.2"), packets("h2.0.2")
		same := func(what string, packet []byte) {
			t.Helper()
			for i := range 70 {
				now := time.Duration(i) * time.Millisecond
				got, want := e.wrapOne(slices.Concat(make([]byte, encap.MaxOverhead), packet), now), calm.wrapOne(slices.Concat(make([]byte, encap.MaxOverhead), packet), now)
				if !slices.Equal(got[12:], want[12:]) { // all but the outer ID and checksum
					t.Fatalf("%s: %s: packet %d leaves as %x, without changes as %x", name, what, i, got[:48], want[:48])
				}
			}
		}
		same("before", near)
		same("before", other)
		for range 3 {
			cut := fatTree.Without(between(t, fatTree, "a3.2", "c1.1"))
			e.SetTopology(cut) // of pod 3, the path by 3.0
			same("a link of another pod is down", other)
			same("a link outside of the pod is down", near)
			for range 30 {
				if w := wrapOne(t, e, far, 0); w.bounce == "3.0" || w.bounce == "none" {
					t.Fatalf("%s: by %s", name, w.bounce)
				}
			}
			e.SetTopology(fatTree)
			same("the link is back", other)
		}
		if n := len(e.paths.groups.byKey); n > 3 {
			t.Errorf("%s: %d groups are left", name, n)
		}
		checkGroups(t, e.paths)
	}
}

// DRB loses 1/n of its capacity with one of n paths: what is left is used
// evenly, from the first packet on.
func TestSetTopology_affectedPairsInterleaveWhatIsLeft(t *testing.T) {
	fabric, _ := topology.FatTree(8)
	for _, name := range []string{"drb", "rrb"} {
		e := testEgress(t, fabric, name)
		dst := node(t, fabric, "h5.1.2")
		p := e.to(fabric, dst)
		for range 5 {
			p.next(&p.data)
		}
		for i, fails := range []string{"c1.1", "c2.3", "c4.4"} {
			e.SetTopology(e.paths.topo.WithoutNode(node(t, fabric, fails)))
			p := e.to(fabric, dst)
			left := 16 - i - 1
			used := map[int]int{}
			for n := range 10*left + 3 {
				used[p.next(&p.data).index]++
				for _, times := range used {
					if times > n/left+1 {
						t.Fatalf("%s without %d cores: after %d packets %v", name, i+1, n+1, used)
					}
				}
			}
			if len(used) != left {
				t.Fatalf("%s without %d cores uses %d paths", name, i+1, len(used))
			}
		}
	}
}

// A flow that keeps to one path leaves it when it dies, and not for another's
// sake.
func TestSetTopology_flowsStayOnLivePaths(t *testing.T) {
	e := testEgress(t, fatTree, "ecmp")
	before := map[uint16]string{}
	for port := range uint16(400) {
		before[port] = wrapOne(t, e, dataPacket(port, 100), 0).bounce
	}
	e.SetTopology(fatTree.WithoutNode(node(t, fatTree, "3.2")))
	moved := map[string]int{}
	for port, was := range before {
		is := wrapOne(t, e, dataPacket(port, 100), 0).bounce
		if is == "3.2" || was != "3.2" && is != was {
			t.Fatalf("flow %d goes by %s, went by %s", port, is, was)
		}
		if was == "3.2" {
			moved[is]++
		}
	}
	for _, to := range []string{"3.0", "3.1", "3.3"} {
		if moved[to] < 15 {
			t.Errorf("of the dead path's flows have moved %v", moved)
		}
	}
	e.SetTopology(fatTree)
	for port, was := range before {
		if is := wrapOne(t, e, dataPacket(port, 100), 0).bounce; is != was {
			t.Fatalf("flow %d goes by %s, went by %s before all", port, is, was)
		}
	}
}

// A flowcell under way goes on where its path lives.
func TestSetTopology_flowcellsStayOnLivePaths(t *testing.T) {
	for _, name := range []string{"presto", "flowcell-drb", "letflow"} {
		e := testEgress(t, fatTree, name)
		first := wrapOne(t, e, dataPacket(1, 1448), 0)
		other, _ := fatTree.Lookup(next(first.bounce))
		e.SetTopology(fatTree.WithoutNode(other.ID))
		second := wrapOne(t, e, dataPacket(1, 1448), 0)
		if second.bounce != first.bounce || second.number != first.number+1 && name != "letflow" {
			t.Errorf("%s: goes on with %04x by %s after %04x by %s", name, second.number, second.bounce, first.number, first.bounce)
		}
	}
}

// A path dies and nobody says so: what TCP sends again after a timeout must not
// follow the rest of its flowcell.
func TestWrap_aTimeoutBeginsAnotherUnit(t *testing.T) {
	for _, name := range []string{"presto", "flowcell-drb"} {
		e := testEgress(t, fatTree, name)
		segment := func(seq uint32) []byte {
			b := dataPacket(1, 1000)
			binary.BigEndian.PutUint32(b[24:], seq)
			return b
		}
		now := time.Duration(0)
		first := wrapOne(t, e, segment(1000), now)
		last := wrapOne(t, e, segment(2000), now)
		if last.bounce != first.bounce {
			t.Fatalf("%s: %s after %s in one flowcell", name, last.bounce, first.bounce)
		}
		now += time.Millisecond // too early for a timeout
		if w := wrapOne(t, e, segment(1000), now); w.bounce != first.bounce || w.number != last.number+1 {
			t.Errorf("%s: sent again by %s as %04x, the flowcell goes by %s", name, w.bounce, w.number, first.bounce)
		}
		used := map[string]bool{}
		cell := first.number.Cell()
		for range 4 {
			now += 40 * time.Millisecond
			w := wrapOne(t, e, segment(1000), now)
			used[w.bounce] = true
			if cell++; w.number.Cell() != cell%flowcell.Cells || w.number.Index() != 0 {
				t.Errorf("%s: sent again as %04x, wanted is a new flowcell", name, w.number)
			}
		}
		if len(used) != 4 {
			t.Errorf("%s: four timeouts try %d paths", name, len(used))
		}
		fin := dataPacket(1, 0)
		fin[33] |= flowcell.FlagFIN
		clear(used)
		for range 4 {
			now += 40 * time.Millisecond
			used[wrapOne(t, e, fin, now).bounce] = true
		}
		if len(used) != 4 {
			t.Errorf("%s: four FINs try %d paths", name, len(used))
		}
		now += time.Second // new data after a pause stays
		w := wrapOne(t, e, segment(3000), now)
		if w.number.Index() != 1 {
			t.Errorf("%s: new data is %04x", name, w.number)
		}
	}
}
