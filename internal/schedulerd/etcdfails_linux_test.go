package schedulerd

import (
	"context"
	"errors"
	"io"
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

	testLifetime = time.Minute
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

	client *clientv3.Client
	late   atomic.Int64 // how much the candidate's clock goes ahead, in nanoseconds
	stop   func()       // ends the candidate
}

// newLed returns one that campaigns until the test ends.
func newLed(t *testing.T) *led {
	t.Helper()
	l := &led{t: t, etcd: storetest.New(t, 1)}
	l.server, l.top = newTestServer(t, func(f hedera.Fabric) hedera.Fabric { return f })
	l.lead(nil, 0)
	l.client = l.etcd.Client()
	l.campaign(testPeriod, 0)
	t.Cleanup(func() { l.etcd.Intercept(nil); l.stop() })
	l.host = newHost(t, l.top, 0, l.file.listen)
	within(t, "the flow is placed", func() bool { l.report(); return l.at() >= 0 })
	l.path = l.at()
	l.dead = l.top.Paths(0, 8).Path(l.path).Links[1]
	return l
}

// campaign begins to. Changes are written one by one.
func (l *led) campaign(period, writeFor time.Duration) {
	c := &candidate{server: l.server, log: eventlog.Options{Format: "text", Level: "info"}.To(io.Discard), period: period, atOnce: 1, writeFor: writeFor,
		now:   func() time.Duration { return l.now() + time.Duration(l.late.Load()) },
		store: store.Config{Client: l.client, Prefix: testPrefix, Self: l.file.listen.String(), TTL: testTTL, Lifetime: testLifetime}}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() { c.run(ctx) })
	l.stop = func() { cancel(); all.Wait() }
}

// manyFlows is how many reportMany reports.
const manyFlows = 10

// reportMany reports the flow, now a small one, and others. Its place is the others' room.
func (l *led) reportMany() {
	var list []wire.Flow
	for n := range topology.NodeID(manyFlows) {
		list = append(list, wire.Flow{Tuple: tupleOf(l.top, 0, 4+(n+4)%manyFlows), Rate: 1e8})
	}
	l.host.client.Send(wire.Report{Flows: list})
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
// stored, and the leader resigns when placements have expired by its clock. When writes are taken again a
// scheduler leads, and tells.
func TestCandidate_resignsIfItCannotWrite(t *testing.T) {
	l := newLed(t)
	epoch, terms := l.status().Epoch, l.status().Terms
	var refused atomic.Int32 // while it leads
	l.etcd.Intercept(func(method string) error {
		if method != txn {
			return nil
		}
		if l.status().Leads {
			l.late.Add(int64(testLifetime / 4))
			if refused.Add(1) == 1 { // the next rounds have something to tell
				if err := l.heard(l.top.Without(l.dead)); err != nil {
					t.Error(err)
				}
			}
		}
		return errRefused
	})
	within(t, "the leader resigns", func() bool {
		l.report()
		if at := l.at(); at != l.path {
			t.Fatalf("the host is told of path %d, which is not stored; the stored one is %d", at, l.path)
		}
		s := l.status()
		return !s.Leads && s.EtcdErrors >= uint64(refused.Load())
	})
	if n := refused.Load(); n < 2 || n > 4 {
		t.Errorf("it has resigned after %d writes, each a quarter of placements' lifetime after the one before", n)
	}
	if s := l.status(); s.Error == "" || s.Unwritten > 0 {
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
