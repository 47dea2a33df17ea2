package schedulerd

import (
	"net/netip"
	"slices"
	"testing"

	"weft/hedera"
	"weft/topology"
)

// What etcd says of the next leader while this one's term ends is not lost.
func TestServer_remembersWhoIsNext(t *testing.T) {
	s, _ := newTestServer(t, func(f hedera.Fabric) hedera.Fabric { return f })
	own, next := s.status().Leader, "127.0.0.1:9"
	epoch := s.status().Epoch
	s.follow(own, epoch)
	if got := s.status(); !got.Leads || got.Leader != own {
		t.Fatalf("%+v", got)
	}
	s.follow(next, epoch+1)
	if got := s.status(); !got.Leads || got.Leader != own {
		t.Errorf("the term has not ended, and %s leads", got.Leader)
	}
	s.lead(nil, 0)
	if got := s.status(); got.Leads || got.Leader != next || got.Epoch != epoch+1 {
		t.Errorf("after the term %q leads since %d, want %s", got.Leader, got.Epoch, next)
	}
}

// After a term that nobody has followed yet nobody leads: this scheduler's own key does not say so.
func TestServer_doesNotFollowItself(t *testing.T) {
	s, _ := newTestServer(t, func(f hedera.Fabric) hedera.Fabric { return f })
	s.follow(s.status().Leader, s.status().Epoch)
	if s.lead(nil, 0); s.status().Leader != "" {
		t.Errorf("%q leads", s.status().Leader)
	}
}

// What has been written is not written again, and what changes meanwhile is.
func TestUnwritten_forgetsWhatIsWritten(t *testing.T) {
	top, err := topology.Parse(testFabric)
	if err != nil {
		t.Fatal(err)
	}
	at := func(dst topology.NodeID) hedera.Assignment { return hedera.Assignment{Tuple: tupleOf(top, 0, dst)} }
	u := newUnwritten()
	u.add([]hedera.Assignment{at(8), at(9)}, []hedera.Assignment{at(10), at(11)})
	u.written([]hedera.Assignment{at(8)}, []hedera.Assignment{at(10)})
	if put, remove := u.lists(); !slices.Equal(put, []hedera.Assignment{at(9)}) || !slices.Equal(remove, []hedera.Assignment{at(11)}) {
		t.Errorf("to be written: %v, to be removed: %v", put, remove)
	}
}

// A flow that is placed again is not withdrawn at the same node, but at another one.
func TestWithdrawals(t *testing.T) {
	top, err := topology.Parse(testFabric)
	if err != nil {
		t.Fatal(err)
	}
	at := func(node string, dst topology.NodeID) hedera.Assignment {
		return hedera.Assignment{Node: netip.MustParseAddr(node), Tuple: tupleOf(top, 0, dst)}
	}
	placed := []hedera.Assignment{at("10.0.0.2", 8), at("10.0.0.1", 9)}
	ended := []hedera.Assignment{at("10.0.0.2", 8), at("10.0.0.2", 9), at("10.0.0.2", 10)}
	if got := withdrawals(placed, ended); !slices.Equal(got, ended[1:]) {
		t.Errorf("withdrawn: %v", got)
	}
}
