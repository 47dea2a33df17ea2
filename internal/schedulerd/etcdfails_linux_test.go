package schedulerd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"weft/hedera"
	"weft/hedera/store"
	"weft/hedera/store/storetest"
	"weft/hedera/wire"
	"weft/internal/eventlog"
	"weft/topology"
)

const (
	txn        = "/etcdserverpb.KV/Txn"
	testPrefix = "/weft/test"
	testPeriod = 20 * time.Millisecond
	testTTL    = 90 * time.Second // it is not what ends a term
)

var errRefused = errors.New("the test refuses it")

// led is a scheduler that one host reports a flow to, which is placed.
type led struct {
	*server
	t    *testing.T
	top  *topology.Topology
	etcd *storetest.Cluster
	host *host
	dead topology.LinkID // of the path on which the flow is placed
	path int
}

// newLed returns one that campaigns until the test ends.
func newLed(t *testing.T) *led {
	t.Helper()
	l := &led{t: t, etcd: storetest.New(t, 1)}
	l.server, l.top = newTestServer(t, func(f hedera.Fabric) hedera.Fabric { return f })
	l.lead(nil, 0)
	c := &candidate{server: l.server, log: eventlog.Options{Format: "text", Level: "info"}.To(io.Discard), period: testPeriod, atOnce: 1, // the least that is not nothing

		store: store.Config{Client: l.etcd.Client(), Prefix: testPrefix, Self: l.file.listen.String(), TTL: testTTL, Lifetime: time.Minute}}
	ctx, stop := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() { c.run(ctx) })
	t.Cleanup(func() { l.etcd.Intercept(nil); stop(); all.Wait() })
	l.host = newHost(t, l.top, 0, l.file.listen)
	within(t, "the flow is placed", func() bool { l.report(); return l.at() >= 0 })
	l.path = l.at()
	l.dead = l.top.Paths(0, 8).Path(l.path).Links[1]
	return l
}

func (l *led) report() {
	l.host.client.Send(wire.Report{Flows: []wire.Flow{{Tuple: tupleOf(l.top, 0, 8), Rate: 900e6}}})
}

// at is the path on which the host has been told that its flow is placed; -1 if it is not.
func (l *led) at() int {
	all, _ := l.host.paths()
	if len(all) == 0 {
		return -1
	}
	return all[0]
}

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

// revoke ends the leader's session.
func (l *led) revoke() {
	l.t.Helper()
	client := l.etcd.Client()
	r, err := client.Leases(l.t.Context())
	if err != nil {
		l.t.Fatal(err)
	}
	for _, lease := range r.Leases {
		if info, err := client.TimeToLive(l.t.Context(), lease.ID); err == nil && info.GrantedTTL == int64(testTTL/time.Second) {
			if _, err := client.Revoke(l.t.Context(), lease.ID); err != nil {
				l.t.Fatal(err)
			}
		}
	}
}

// etcd takes no write, though it keeps the leader's session: nobody is told of a placement that is not
// stored, and the leader resigns. When writes are taken again a scheduler leads, and tells.
func TestCandidate_resignsIfItCannotWrite(t *testing.T) {
	l := newLed(t)
	epoch, terms := l.status().Epoch, l.status().Terms
	var refused atomic.Int32
	l.etcd.Intercept(func(method string) error {
		if method != txn {
			return nil
		}
		if refused.Add(1) == 1 { // the next rounds have something to tell
			if err := l.heard(l.top.Without(l.dead)); err != nil {
				t.Error(err)
			}
		}
		return errRefused
	})
	within(t, "the leader resigns", func() bool {
		l.report()
		if at := l.at(); at != l.path {
			t.Fatalf("the host is told of path %d, which is not stored; the stored one is %d", at, l.path)
		}
		return !l.status().Leads
	})
	if n := refused.Load(); n < maxFailures {
		t.Errorf("it has resigned after %d writes, want %d", n, maxFailures)
	}
	if s := l.status(); s.Error == "" || s.Unwritten > 0 || s.EtcdErrors < maxFailures {
		t.Errorf("the status does not say why: %+v", s)
	}
	l.etcd.Intercept(nil)
	within(t, "the flow is placed anew", func() bool {
		l.report()
		return l.at() >= 0 && l.at() != l.path
	})
	if s := l.status(); s.Epoch <= epoch || s.Terms != terms+1 || s.Error != "" {
		t.Errorf("epoch %d after %d: %+v", s.Epoch, epoch, s)
	}
}

// A placement ends in a round that cannot be written: the node is told with the next round that can.
func TestCandidate_tellsWithdrawalsLater(t *testing.T) {
	l := newLed(t)
	whole := l.top
	for _, p := range whole.Ports(whole.EdgeOf(0)) {
		if p.Up {
			whole = whole.Without(p.Link) // there is no path
		}
	}
	refused, ended, terms := 0, l.status().Ended, l.status().Terms
	l.etcd.Intercept(func(method string) error { // calls come one after the other
		if method != txn || refused == 2 {
			return nil
		}
		if refused++; refused == 1 {
			if err := l.heard(whole); err != nil {
				t.Error(err)
			}
		} else if n := l.status().Ended; n != ended+1 {
			t.Errorf("%d placements have ended in the round that is refused, want %d", n, ended+1)
		}
		return errRefused
	})
	within(t, "the host is told that its placement has ended", func() bool { return l.at() < 0 })
	if s := l.status(); s.EtcdErrors != 2 || s.Terms != terms {
		t.Errorf("%d writes have failed in %d terms, want 2 in one", s.EtcdErrors, s.Terms)
	}
}

// A session that etcd ends, whoever has asked for it, ends the term: another one begins, and the flow
// keeps its path.
func TestCandidate_termEndsWithItsSession(t *testing.T) {
	l := newLed(t)
	epoch := l.status().Epoch
	l.revoke()
	within(t, "another term begins", func() bool { l.report(); return l.status().Epoch > epoch && l.status().Leads })
	rounds := l.status().Rounds
	within(t, "some rounds", func() bool { l.report(); return l.status().Rounds > rounds+3 })
	if _, turns := l.host.paths(); turns > 0 || l.at() != l.path {
		t.Errorf("the flow has gone from path %d to %d, in %d turns", l.path, l.at(), turns)
	}
}

// Placements change faster than etcd takes: a round writes what it can, one here, and the next ones go on
// and compute nothing. No node is ever told what is not stored, in the end all is, and another leader takes
// all over.
func TestCandidate_writesInSeveralRounds(t *testing.T) {
	l := newLed(t)
	client := l.etcd.Client()
	stored := func(p wire.Placement) bool {
		a, ok, err := store.Get(context.Background(), store.Config{Client: client, Prefix: testPrefix}, p.Tuple)
		if err != nil {
			t.Error(err)
		}
		return ok == (p.For > 0) && (!ok || a.Path == p.Path)
	}
	hear := func(by func(wire.Placement)) {
		l.host.mu.Lock()
		defer l.host.mu.Unlock()
		l.host.hears = by
	}
	hear(func(p wire.Placement) {
		if p.For > 0 && !stored(p) {
			t.Errorf("the host is told of path %d of %v, which is not stored", p.Path, p.Tuple)
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
	const flows = 10
	report := func() {
		var list []wire.Flow // that to host 8 first: what it had is the others' room
		for n := range topology.NodeID(flows) {
			list = append(list, wire.Flow{Tuple: tupleOf(l.top, 0, 4+(n+4)%flows), Rate: 1e8})
		}
		l.host.client.Send(wire.Report{Flows: list})
	}
	placed := func(n int) func() bool {
		return func() bool { report(); all, _ := l.host.paths(); return len(all) == n }
	}
	within(t, "all flows are placed", placed(flows))
	l.etcd.Intercept(nil)
	mu.Lock()
	most := slices.Max(slices.Collect(maps.Values(writes)))
	mu.Unlock()
	if most < flows-1 {
		t.Errorf("%d writes at most are of one round, want one of each new flow", most)
	}
	epoch := l.status().Epoch
	l.revoke()
	within(t, "another term begins", func() bool { report(); return l.status().Epoch > epoch && l.status().Leads })
	rounds := l.status().Rounds
	within(t, "some rounds", func() bool { report(); return l.status().Rounds > rounds+3 })
	if _, turns := l.host.paths(); turns > 0 || !placed(flows)() {
		t.Errorf("flows have changed their paths %d times", turns)
	}
	within(t, "all are stored under the new term's lease", func() bool { report(); return epochs(t, client) == fmt.Sprint(l.status().Epoch) })
	if s := l.status(); s.Unwritten > 0 || s.EtcdErrors > 1 || s.Placed != flows { // one for the session
		t.Errorf("%+v", s)
	}
}
