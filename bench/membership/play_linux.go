package membership

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"weft/mesh"
)

// talk begins connections between the hosts that stay: each to the next one, and to the seventh.
func (b *bed) talk(ctx context.Context) error {
	all := b.staying()
	for i, h := range all {
		for _, far := range slices.Compact([]int{1, 7 % len(all)}) {
			to := all[(i+far)%len(all)]
			if to == h {
				continue
			}
			ctx, cancel := context.WithTimeout(ctx, patience)
			c, err := h.Host.DialContext(ctx, "tcp", netip.AddrPortFrom(to.address, echoPort).String())
			cancel()
			if err != nil {
				return fmt.Errorf("connect %s to %s: %w", h.name, to.name, err)
			}
			b.traffic.Connections++
			b.all.Go(func() { b.exchange(h, to, c, rand.New(rand.NewPCG(b.o.Seed, uint64(i<<8|far)))) })
		}
	}
	return nil
}

// exchange sends over a connection and compares what comes back, until the end.
func (b *bed) exchange(h, to *host, c net.Conn, r *rand.Rand) {
	defer c.Close()
	for b.pause(between(r, 50*time.Millisecond, 250*time.Millisecond)) {
		n := 1 + r.IntN(20_000)
		err := echo(c, r, n)
		b.mu.Lock()
		if err == nil {
			b.traffic.Exchanges++
			b.traffic.Bytes += uint64(n)
			b.mu.Unlock()
			continue
		}
		b.traffic.Lost++
		b.mu.Unlock()
		b.failf("the connection from %s to %s is lost: %v", h.name, to.name, err)
		return
	}
}

func echo(c net.Conn, r *rand.Rand, n int) error {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	want := sha256.Sum256(b)
	sent := make(chan error, 1)
	go func() { _, err := c.Write(b); sent <- err }()
	if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	got := make([]byte, n)
	if _, err := io.ReadFull(c, got); err != nil {
		return err
	}
	if sha256.Sum256(got) != want {
		return errors.New("what came back is not what was sent")
	}
	return <-sent
}

// churn has a host come and go, in all ways.
func (b *bed) churn(slot int) {
	r := rand.New(rand.NewPCG(b.o.Seed, uint64(1<<20+slot)))
	var h *host
	kind, again := joins, (*host)(nil)
	for round := 0; b.pause(between(r, 0, 4*time.Second)); round++ {
		n := b.o.Hosts - b.o.churning() + slot + round*b.o.churning()
		if kind == moves {
			n = h.n
		}
		former := h
		var err error
		if h, err = b.begin(n, again, kind); err != nil {
			b.failf("begin host %d: %v", n, err)
			return
		}
		kind, again = joins, nil
		if former != nil {
			former.closeRelays()
		}
		if !b.pause(b.o.TTL/4 + between(r, time.Second, 5*time.Second)) {
			b.remove(h)
			if err := h.leave(); err != nil {
				b.notef("%s leaves: %v", h.name, err)
			}
			return
		}
		b.remove(h)
		name := h.name // h is the next host while some have not acted yet
		gone := func(_ string, peers []mesh.Peer) bool {
			return !slices.ContainsFunc(peers, func(p mesh.Peer) bool { return p.Name == name })
		}
		switch round % 4 {
		case 0:
			b.book.begin(leaves, h.name, b.now(), b.reached(), gone)
			if err := h.leave(); err != nil {
				b.notef("%s leaves: %v", h.name, err) // etcd has no leader just then
			}
		case 1:
			b.book.begin(dies, h.name, b.now(), b.reached(), gone)
			if err := h.die(); err != nil {
				b.failf("%s dies: %v", h.name, err)
			}
			b.pause(b.o.TTL + 5*time.Second)
		case 2: // it begins at once somewhere else, with its key
			kind, again = moves, h
			if err := h.die(); err != nil {
				b.failf("%s dies: %v", h.name, err)
			}
		case 3: // it takes its registration back, and goes on sending
			if err := h.session.Close(); err != nil {
				b.notef("%s leaves: %v", h.name, err)
			}
			b.pause(b.o.Linger + 10*time.Second)
			b.mu.Lock()
			b.foreign.Expired += uint64((b.o.Linger+10*time.Second)/beaconEach) * beaconPeers
			b.mu.Unlock()
			if err := h.end(); err != nil {
				b.failf("%s ends: %v", h.name, err)
			}
		}
	}
}

// faults waits while hosts come and go, and then kills etcd's leader again and again. Between the
// kills it cuts networks.
func (b *bed) faults(ctx context.Context) error {
	if !b.sleep(ctx, b.o.Quiet) {
		return ctx.Err()
	}
	b.book.killing()
	r := rand.New(rand.NewPCG(b.o.Seed, 1<<21))
	for n := range b.o.Kills {
		if b.o.Progress != nil {
			b.o.Progress(n, b.o.Kills)
		}
		if err := b.kill(ctx, between(r, 0, 2*time.Second)); err != nil {
			return err
		}
		if !b.sleep(ctx, between(r, time.Second, 3*time.Second)) {
			return ctx.Err()
		}
		if n%cutEach != cutEach-1 {
			continue
		}
		var err error
		switch n / cutEach % 3 {
		case 0:
			err = b.cutFromEtcd(ctx, r)
		case 1:
			err = b.cutFromHost(ctx, r)
		case 2:
			err = b.cutMinority(ctx, r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// cutEach is after how many kills a network is cut.
const cutEach = 3

func (b *bed) sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// kill kills the leader, and starts it again after some time.
func (b *bed) kill(ctx context.Context, after time.Duration) error {
	c := b.cluster
	leader, err := c.awaitLeader(ctx, -1)
	if err != nil {
		return err
	}
	began := b.now()
	if err := c.run[leader].Signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-c.run[leader].Ended()
	b.notef("etcd's leader, member %d, is killed", leader)
	if _, err := c.awaitLeader(ctx, leader); err != nil {
		return err
	}
	b.book.add(elects, b.now()-began)
	if !b.sleep(ctx, after) {
		return ctx.Err()
	}
	if err := c.start(leader); err != nil {
		return err
	}
	return c.await(ctx, "the member answers", func() bool { _, err := c.status(leader); return err == nil })
}

// cutFromEtcd cuts some hosts from etcd until their registrations have ended.
func (b *bed) cutFromEtcd(ctx context.Context, r *rand.Rand) error {
	all := b.staying()
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	all = all[:max(1, len(all)/8)]
	b.notef("%d hosts are cut from etcd", len(all))
	for _, h := range all {
		h.etcd.set(true)
		b.book.excuse(h.name)
	}
	b.cuts.HostFromEtcd += len(all)
	if !b.sleep(ctx, b.o.cut()) {
		return ctx.Err()
	}
	began := b.now()
	for _, h := range all {
		h.etcd.set(false)
	}
	b.notef("they reach it again")
	return b.cluster.await(ctx, "hosts that reach etcd again are registered", func() bool {
		all = slices.DeleteFunc(all, func(h *host) bool {
			s := h.session.Status()
			ok := s.Registered && s.Following && s.Updates > 0
			if ok {
				b.book.add(healed, b.now()-began)
			}
			return ok
		})
		return len(all) == 0
	})
}

// cutFromHost cuts pairs of hosts from each other.
func (b *bed) cutFromHost(ctx context.Context, r *rand.Rand) error {
	all := b.staying()
	at := r.IntN(len(all))
	var pairs [][2]*host
	for i := range max(1, len(all)/8) {
		pairs = append(pairs, [2]*host{all[(at+2*i)%len(all)], all[(at+2*i+1)%len(all)]})
	}
	b.notef("%d pairs of hosts are cut from each other", len(pairs))
	set := func(cut bool) {
		for _, p := range pairs {
			p[0].tap.setCut(p[1].tap.LocalAddr(), cut)
			p[1].tap.setCut(p[0].tap.LocalAddr(), cut)
		}
	}
	set(true)
	b.cuts.HostFromHost += len(pairs)
	ok := b.sleep(ctx, 5*time.Second)
	set(false)
	if !ok {
		return ctx.Err()
	}
	return nil
}

// cutMinority cuts one member of etcd from the others, the leader or another one. Its clients still
// reach it.
func (b *bed) cutMinority(ctx context.Context, r *rand.Rand) error {
	leader, err := b.cluster.awaitLeader(ctx, -1)
	if err != nil {
		return err
	}
	m := (leader + r.IntN(members)) % members
	b.notef("member %d of etcd is cut from the others; %d leads", m, leader)
	b.cluster.isolated[m].set(true)
	b.cuts.EtcdMinority++
	ok := b.sleep(ctx, b.o.TTL)
	b.cluster.isolated[m].set(false)
	if !ok {
		return ctx.Err()
	}
	_, err = b.cluster.awaitLeader(ctx, -1)
	return err
}
