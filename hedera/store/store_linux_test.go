package store

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"weft/flowcell"
	"weft/hedera"
	"weft/hedera/store/storetest"
	"weft/internal/kernel/kerneltest"
)

func tupleOf(n int) flowcell.FiveTuple {
	return flowcell.FiveTuple{Proto: flowcell.ProtoTCP, SrcPort: uint16(n), DstPort: 80,
		Src: flowcell.AddressFrom(netip.MustParseAddr("10.0.0.2")), Dst: flowcell.AddressFrom(netip.MustParseAddr("fd00::2"))}
}

func assignmentOf(n, path int) hedera.Assignment {
	return hedera.Assignment{Node: netip.MustParseAddr("10.0.0.2"), Tuple: tupleOf(n), Path: path, Via: netip.MustParseAddr("10.4.1.1")}
}

func configOf(c *storetest.Cluster, self string) Config {
	return Config{Client: c.Client(), Prefix: "/weft/test", Self: self, TTL: time.Second, Lifetime: time.Minute}
}

// Two schedulers both believe to lead: what the deposed one writes is refused, and nothing
// of it is there. The next leader has a higher epoch and finds what the first has written.
func TestWrite_ofADeposedLeaderIsRefused(t *testing.T) {
	c := storetest.New(t, 1)
	ctx, cancel := context.WithTimeout(t.Context(), kerneltest.Patience)
	defer cancel()
	first, err := Campaign(ctx, configOf(c, "a"))
	if err != nil {
		t.Fatal(err)
	}
	var many []hedera.Assignment
	for n := range 2*batch + 5 {
		many = append(many, assignmentOf(n, 1))
	}
	if err := first.Write(ctx, many, nil); err != nil {
		t.Fatal(err)
	}
	other := configOf(c, "b")
	// Somebody revokes the first one's session; it has not heard of it when it writes.
	if _, err := other.Client.Revoke(ctx, first.session.Lease()); err != nil {
		t.Fatal(err)
	}
	second, err := Campaign(ctx, other)
	if err != nil {
		t.Fatal(err)
	}
	if second.Epoch() <= first.Epoch() {
		t.Errorf("epoch %d after %d", second.Epoch(), first.Epoch())
	}
	if err := first.Write(ctx, []hedera.Assignment{assignmentOf(0, 2)}, nil); !errors.Is(err, ErrDeposed) {
		t.Errorf("the deposed leader writes: %v", err)
	}
	if err := first.Write(ctx, nil, nil); !errors.Is(err, ErrDeposed) {
		t.Errorf("the deposed leader, which has nothing to write, is not told: %v", err)
	}
	if err := second.Write(ctx, nil, nil); err != nil {
		t.Errorf("the leader has nothing to write: %v", err)
	}
	if err := first.Write(ctx, nil, many); !errors.Is(err, ErrDeposed) {
		t.Errorf("the deposed leader removes: %v", err)
	}
	got, strange, err := Load(ctx, other, 1<<20)
	if err != nil || strange > 0 || len(got) != len(many) {
		t.Fatalf("%d placements, %d strange ones, %v; want %d", len(got), strange, err, len(many))
	}
	for _, a := range got {
		if !slices.Contains(many, a) {
			t.Errorf("%+v was not written", a)
		}
	}
	if err := second.Write(ctx, []hedera.Assignment{assignmentOf(0, 3)}, many[1:]); err != nil {
		t.Fatal(err)
	}
	if got, _, err := Load(ctx, other, 1<<20); err != nil || len(got) != 1 || got[0] != assignmentOf(0, 3) {
		t.Errorf("%+v, %v", got, err)
	}
	if a, ok, err := Get(ctx, other, tupleOf(1)); ok || err != nil {
		t.Errorf("what was removed is %+v, %v", a, err)
	}
	// What others have written there is not taken for a placement.
	if _, err := other.Client.Put(ctx, other.placements()+"00", "{}"); err != nil {
		t.Fatal(err)
	}
	if got, strange, err := Load(ctx, other, 1<<20); err != nil || strange != 1 || len(got) != 1 {
		t.Errorf("%d placements, %d strange ones, %v", len(got), strange, err)
	}
}

// Placements end with their lease, and Keep says that they are gone.
func TestKeep_leasesEnd(t *testing.T) {
	c := storetest.New(t, 1)
	ctx, cancel := context.WithTimeout(t.Context(), kerneltest.Patience)
	defer cancel()
	term, err := Campaign(ctx, configOf(c, "a"))
	if err != nil {
		t.Fatal(err)
	}
	if err := term.Write(ctx, []hedera.Assignment{assignmentOf(0, 1)}, nil); err != nil {
		t.Fatal(err)
	}
	if kept, err := term.Keep(ctx); !kept || err != nil {
		t.Errorf("kept: %v, %v", kept, err)
	}
	if _, err := term.c.Client.Revoke(ctx, term.lease); err != nil { // as etcd does when nobody keeps it
		t.Fatal(err)
	}
	if got, _, err := Load(ctx, term.c, 10); len(got) > 0 || err != nil {
		t.Errorf("%v, %v", got, err)
	}
	if kept, err := term.Keep(ctx); kept || err != nil {
		t.Errorf("kept although gone: %v, %v", kept, err)
	}
	if err := term.Write(ctx, []hedera.Assignment{assignmentOf(0, 1)}, nil); err != nil {
		t.Errorf("with a new lease: %v", err)
	}
}

// candidates returns the keys of those who lead or wait for it, the leader first.
func candidates(t *testing.T, c Config) []*mvccpb.KeyValue {
	t.Helper()
	r, err := c.Client.Get(t.Context(), c.Prefix+"/leader", clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend))
	if err != nil {
		t.Fatal(err)
	}
	return r.Kvs
}

// A candidate whose session ends while it waits is none any more: it is not elected without
// a key when the leader before it ends, but is told at once.
func TestCampaign_sessionEndsWhileWaiting(t *testing.T) {
	c := storetest.New(t, 1)
	ctx, cancel := context.WithTimeout(t.Context(), kerneltest.Patience)
	defer cancel()
	first, err := Campaign(ctx, configOf(c, "a"))
	if err != nil {
		t.Fatal(err)
	}
	type result struct {
		term *Term
		err  error
	}
	done := make(chan result, 1)
	config := configOf(c, "b")
	go func() {
		term, err := Campaign(ctx, config)
		done <- result{term, err}
	}()
	var keys []*mvccpb.KeyValue
	for len(keys) < 2 && ctx.Err() == nil {
		keys = candidates(t, first.c)
	}
	if len(keys) < 2 {
		t.Fatal("the second scheduler is no candidate")
	}
	if _, err := first.c.Client.Revoke(ctx, clientv3.LeaseID(keys[1].Lease)); err != nil {
		t.Fatal(err)
	}
	select {
	case r := <-done:
		if !errors.Is(r.err, errSession) {
			t.Errorf("%v, want that the session has ended", r.err)
		}
	case <-ctx.Done():
		t.Error("the second scheduler waits on, and is no candidate")
	}
	if err := first.Write(t.Context(), []hedera.Assignment{assignmentOf(0, 1)}, nil); err != nil {
		t.Errorf("the leader writes: %v", err)
	}
}

// A scheduler that ends in order gives its place away at once, though its context has ended.
func TestClose_afterTheContextHasEnded(t *testing.T) {
	c := storetest.New(t, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	config := configOf(c, "a")
	config.TTL = time.Hour // it is not what ends the term
	term, err := Campaign(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := term.Close(); err != nil {
		t.Error(err)
	}
	if keys := candidates(t, configOf(c, "b")); len(keys) > 0 {
		t.Errorf("%d keys are left", len(keys))
	}
}
