package schedulerd

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"weft/flowcell"
	"weft/hedera/wire"
)

// epochs are those of the stored placements, each once.
func epochs(t *testing.T, client *clientv3.Client) string {
	r, err := client.Get(t.Context(), testPrefix+"/placements/", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]bool)
	for _, kv := range r.Kvs {
		var a struct{ Epoch uint64 }
		if err := json.Unmarshal(kv.Value, &a); err != nil {
			t.Fatal(err)
		}
		all[fmt.Sprint(a.Epoch)] = true
	}
	return strings.Join(slices.Sorted(maps.Keys(all)), " ")
}

// flowKey names a flow as stored records do.
func flowKey(t flowcell.FiveTuple) string {
	return fmt.Sprint(t.Proto, netip.AddrPortFrom(t.Src.IP(), t.SrcPort), netip.AddrPortFrom(t.Dst.IP(), t.DstPort))
}

// stored is a placement that was stored, and since which revision of etcd.
type stored struct {
	path     int
	revision int64
}

// history returns each flow's placements that were ever stored.
func history(t *testing.T, client *clientv3.Client) map[string][]stored {
	const last = testPrefix + "/placements/last"
	if _, err := client.Put(t.Context(), last, ""); err != nil {
		t.Fatal(err)
	}
	all := make(map[string][]stored)
	for r := range client.Watch(t.Context(), testPrefix+"/placements/", clientv3.WithPrefix(), clientv3.WithRev(1)) {
		if err := r.Err(); err != nil {
			t.Fatal(err)
		}
		for _, e := range r.Events {
			if string(e.Kv.Key) == last {
				return all
			}
			var a struct {
				Proto    uint8
				Src, Dst netip.AddrPort
				Path     int
			}
			if e.Type != clientv3.EventTypePut {
				continue
			}
			if err := json.Unmarshal(e.Kv.Value, &a); err != nil {
				t.Fatal(err)
			}
			flow := fmt.Sprint(a.Proto, a.Src, a.Dst)
			all[flow] = append(all[flow], stored{a.Path, e.Kv.ModRevision})
		}
	}
	t.Fatal("etcd's history has ended")
	return nil
}

// Placements change faster than etcd takes: a round writes what it can, one here, and the next ones go on
// and compute nothing. No node is ever told what was not stored before, in the end all is, and another
// leader takes all over.
func TestCandidate_writesInSeveralRounds(t *testing.T) {
	l := newLed(t)
	type said struct {
		flow     string
		path     int
		revision int64 // of etcd, after it was said
	}
	var told []said
	hear := func(by func([]wire.Placement)) {
		l.host.mu.Lock()
		defer l.host.mu.Unlock()
		l.host.hears = by
	}
	hear(func(list []wire.Placement) {
		r, err := l.client.Get(context.Background(), testPrefix)
		if err != nil {
			t.Error(err)
			return
		}
		for _, p := range list {
			if p.For > 0 {
				told = append(told, said{flowKey(p.Tuple), p.Path, r.Header.Revision})
			}
		}
	})
	t.Cleanup(func() { hear(nil) }) // before the client of etcd ends
	var mu sync.Mutex
	writes := make(map[uint64]int) // by rounds computed
	l.etcd.Intercept(func(method string) error {
		if method == txn {
			mu.Lock()
			defer mu.Unlock()
			writes[l.status().Rounds]++
		}
		return nil
	})
	placed := func() bool { l.reportMany(); all, _ := l.host.paths(); return len(all) == manyFlows }
	within(t, "all flows are placed", placed)
	l.etcd.Intercept(nil)
	mu.Lock()
	most := slices.Max(slices.Collect(maps.Values(writes)))
	mu.Unlock()
	if most < manyFlows-1 {
		t.Errorf("%d writes at most are of one round, want one of each new flow", most)
	}
	epoch := l.status().Epoch
	l.revoke()
	within(t, "another term begins", func() bool { l.reportMany(); return l.status().Epoch > epoch && l.status().Leads })
	rounds := l.status().Rounds
	within(t, "some rounds", func() bool { l.reportMany(); return l.status().Rounds > rounds+3 })
	if _, turns := l.host.paths(); turns > 0 || !placed() {
		t.Errorf("flows have changed their paths %d times", turns)
	}
	within(t, "all are stored under the new term's lease", func() bool { l.reportMany(); return epochs(t, l.client) == fmt.Sprint(l.status().Epoch) })
	if s := l.status(); s.Unwritten > 0 || s.EtcdErrors > 1 || s.Placed != manyFlows { // one for the session
		t.Errorf("%+v", s)
	}
	hear(nil)
	if len(told) < manyFlows {
		t.Errorf("the host was told %d placements", len(told))
	}
	ever := history(t, l.client)
	for _, p := range told {
		if !slices.ContainsFunc(ever[p.flow], func(s stored) bool { return s.path == p.path && s.revision <= p.revision }) {
			t.Errorf("by revision %d the host was told of path %d of %s, of which were stored %v", p.revision, p.path, p.flow, ever[p.flow])
		}
	}
}

// A link fails while the leader is still writing, and computes no rounds: the flow over it is withdrawn
// at once, not told again.
func TestCandidate_withdrawsWhatDiesWhileEtcdIsBehind(t *testing.T) {
	l := newLed(t)
	writes, rounds, done := 0, uint64(0), make(chan struct{})
	l.etcd.Intercept(func(method string) error { // calls come one after the other
		if s := l.status(); method != txn || s.Placed < manyFlows && writes == 0 {
			return nil
		}
		switch writes++; writes {
		case 1: // eight are left
			rounds = l.status().Rounds
			if err := l.heard(l.top.Without(l.dead)); err != nil {
				t.Error(err)
			}
		case 2:
			if !soon(func() bool { return !l.host.has(tupleOf(l.top, 0, 8)) }) {
				t.Error("the flow on the dead path was not withdrawn")
			}
			if n := l.status().Rounds; n != rounds {
				t.Errorf("%d rounds were computed before all was written", n-rounds)
			}
			close(done)
		}
		return nil
	})
	within(t, "the flow is withdrawn", func() bool {
		l.reportMany()
		select {
		case <-done:
			return true
		default:
			return false
		}
	})
	within(t, "all are placed by other paths", func() bool {
		l.reportMany()
		return l.status().Placed == manyFlows && l.host.has(tupleOf(l.top, 0, 8))
	})
}

// Of a round's writes etcd takes some and refuses others: what is written is told, and told again, though
// each round fails.
func TestCandidate_tellsWhatIsWritten(t *testing.T) {
	l := newLed(t)
	l.stop()
	l.campaign(testPeriod, time.Hour) // till all is written, or one fails
	within(t, "it leads again", func() bool { l.report(); return l.status().Leads && l.status().Placed == 1 })
	terms, writes := l.status().Terms, 0
	l.etcd.Intercept(func(method string) error { // calls come one after the other
		if s := l.status(); method != txn || s.Placed < manyFlows {
			return nil
		}
		switch writes++; {
		case writes%2 == 0:
			return errRefused
		case writes == 7: // three were written by rounds that have failed
			if !soon(func() bool { all, _ := l.host.paths(); return len(all) == 4 }) {
				all, _ := l.host.paths()
				t.Errorf("the host is told of %d flows, want 4", len(all))
			}
		}
		return nil
	})
	within(t, "all are placed", func() bool { l.reportMany(); all, _ := l.host.paths(); return len(all) == manyFlows })
	if s := l.status(); s.EtcdErrors < 3 || s.Terms != terms {
		t.Errorf("%d writes have failed, in %d terms; want 3 or more in one", s.EtcdErrors, s.Terms-terms+1)
	}
}
