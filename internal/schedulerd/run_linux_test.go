package schedulerd

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"weft/hedera/store/storetest"
	"weft/hedera/wire"
	"weft/internal/kernel/kerneltest"
	"weft/internal/service"
	"weft/topology"
	"weft/topoupdate"
)

const testKey = "keys:\n- {id: 1, key: c3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3M=}\n"

var testKeys = topoupdate.Keys{List: []topoupdate.Key{{ID: 1, Secret: bytes.Repeat([]byte("s"), 32)}}}

const (
	testFabric = "fat-tree:k=4,host-rate=1000,fabric-rate=1000,core-rate=1000"
	manyHosts  = "fat-tree:k=8,host-rate=1000,fabric-rate=1000,core-rate=1000"
)

// running is a weft scheduler in this process.
type running struct {
	t       testing.TB
	at      netip.AddrPort
	socket  string
	file    string
	stop    context.CancelFunc
	signals chan os.Signal
	ended   chan struct{} // closed when Run has returned
	err     error         // what it has, after that
	log     messages
}

type messages struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (m *messages) Write(b []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.b.Write(b)
}

func (m *messages) String() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.b.String()
}

func freePort(t testing.TB) netip.AddrPort {
	t.Helper()
	c, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return c.LocalAddr().(*net.UDPAddr).AddrPort()
}

func start(t *testing.T, c *storetest.Cluster, more string) *running {
	t.Helper()
	return startIn(t, testFabric, c, "ttl: 1s", "period: 50ms\n"+more)
}

// startIn starts a scheduler of a fabric.
func startIn(t testing.TB, fabric string, c *storetest.Cluster, etcd, more string) *running {
	t.Helper()
	dir := t.TempDir()
	r := &running{t: t, at: freePort(t), socket: filepath.Join(dir, "s"), file: filepath.Join(dir, "scheduler.yaml"),
		signals: make(chan os.Signal), ended: make(chan struct{})}
	text := fmt.Sprintf("topology: %s\nlisten: %v\netcd: {endpoints: [%s], %s}\nstatus: %s\n%s%s",
		fabric, r.at, strings.Join(c.Endpoints(), ", "), etcd, r.socket, testKey, more)
	if err := os.WriteFile(r.file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	go func() { defer close(r.ended); r.err = Run(ctx, r.file, r.signals, &r.log) }()
	t.Cleanup(func() {
		stop()
		if <-r.ended; r.err != nil {
			t.Errorf("the scheduler: %v", r.err)
		}
		if t.Failed() {
			t.Logf("%s", r.log.String())
		}
	})
	return r
}

func (r *running) status() (s Status) {
	text, err := service.AskStatus(r.t.Context(), r.socket, "weft scheduler")
	if err == nil {
		json.Unmarshal(text, &s)
	}
	return s
}

func within(t testing.TB, what string, ok func() bool) {
	t.Helper()
	if !soon(ok) {
		t.Fatalf("not within %v: %s", kerneltest.Patience, what)
	}
}

// soon waits for something, and reports whether it has come.
func soon(ok func() bool) bool {
	for end := time.Now().Add(kerneltest.Patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if ok() {
			return true
		}
	}
	return false
}

// Two schedulers: nodes' flows are placed without overlap, the leader ends, the other one
// goes on with the same paths.
func TestRun_placesFlowsAndSurvivesTheLeader(t *testing.T) {
	c := storetest.New(t, 1)
	top, err := topology.Parse(testFabric)
	if err != nil {
		t.Fatal(err)
	}
	a := start(t, c, "lifetime: 10s\n")
	within(t, "the first scheduler leads", func() bool { return a.status().Leads })
	b := start(t, c, "lifetime: 10s\n")
	within(t, "the second one knows who leads", func() bool { return b.status().Leader == a.at.String() })
	// Two hosts of a rack, each with a flow to another pod.
	hosts := []*host{newHost(t, top, 0, b.at, a.at), newHost(t, top, 1, a.at, b.at)}
	send := func() {
		for i, h := range hosts {
			h.client.Send(wire.Report{Flows: []wire.Flow{{Tuple: tupleOf(top, topology.NodeID(i), topology.NodeID(8+2*i)), Rate: 900e6},
				{Tuple: tupleOf(top, topology.NodeID(i), topology.NodeID(14+i)), Rate: 5e9}, // more than the link
				{Tuple: tupleOf(top, 5, 12), Rate: 500e6}}})                                 // another host's
		}
	}
	both := func() bool {
		send()
		for _, h := range hosts {
			if all, _ := h.paths(); len(all) != 1 {
				return false
			}
		}
		return true
	}
	within(t, "both flows are placed", both)
	x, _ := hosts[0].paths()
	y, _ := hosts[1].paths()
	if x[0]/2 == y[0]/2 {
		t.Errorf("paths %d and %d share the edge switch's port", x[0], y[0])
	}
	s := a.status()
	if s.Refused["rate"] == 0 || s.Refused["node"] == 0 || s.Placed != 2 || s.Nodes != 2 {
		t.Errorf("status %+v", s)
	}
	// The first of the two may have had to give way to the second.
	var before [2]int
	for i, h := range hosts {
		_, before[i] = h.paths()
	}
	a.stop()
	within(t, "the second scheduler leads", func() bool { send(); return b.status().Leads && b.status().Placed == 2 })
	rounds := b.status().Rounds
	within(t, "some rounds", func() bool {
		send()
		return b.status().Rounds > rounds+5 && hosts[0].client.Status().Leader == b.at.String()
	})
	for i, h := range hosts {
		if _, turns := h.paths(); turns > before[i] {
			t.Errorf("host %d: its flow has changed its path %d times since the first scheduler ended", i, turns-before[i])
		}
	}
	if b.status().Epoch <= s.Epoch {
		t.Errorf("epoch %d after %d", b.status().Epoch, s.Epoch)
	}
}

// A leader that is told to end gives up its key: the next one need not wait for etcd.ttl.
func TestRun_aLeaderThatEndsResigns(t *testing.T) {
	c := storetest.New(t, 1)
	const times = "period: 50ms\nlifetime: 1m\n"
	a := startIn(t, testFabric, c, "ttl: 59s", times)
	within(t, "the first scheduler leads", func() bool { return a.status().Leads })
	b := startIn(t, testFabric, c, "ttl: 59s", times)
	within(t, "the second one knows who leads", func() bool { return b.status().Leader == a.at.String() })
	a.signals <- syscall.SIGTERM
	<-a.ended
	r, err := c.Client().Get(t.Context(), "/weft/hedera/", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range r.Kvs {
		if string(kv.Value) == a.at.String() {
			t.Fatalf("%s is left behind", kv.Key)
		}
	}
	if text := a.log.String(); strings.Contains(text, notResigned) {
		t.Error(text)
	}
	within(t, "the second one leads", func() bool { return b.status().Leads })
}

// etcd is gone: nobody is told anything new, and the scheduler says why. When it is back
// all goes on.
func TestRun_withoutEtcd(t *testing.T) {
	c := storetest.New(t, 1)
	top, err := topology.Parse(testFabric)
	if err != nil {
		t.Fatal(err)
	}
	a := start(t, c, "rule: first-fit\nlifetime: 2s\n")
	h := newHost(t, top, 0, a.at)
	placed := func() bool {
		h.client.Send(wire.Report{Flows: []wire.Flow{{Tuple: tupleOf(top, 0, 8), Rate: 900e6}}})
		all, _ := h.paths()
		return len(all) == 1
	}
	within(t, "the flow is placed", placed)
	c.Kill(0)
	within(t, "the scheduler says that etcd is gone", func() bool { return a.status().Error != "" })
	within(t, "its term ends", func() bool { return !a.status().Leads })
	within(t, "the node knows of no leader", func() bool { return h.client.Status().Leader == "" })
	h.mu.Lock()
	clear(h.placed)
	h.mu.Unlock()
	if h.client.Send(wire.Report{}) {
		t.Error("a report goes to a scheduler that does not lead")
	}
	if all, _ := h.paths(); len(all) > 0 {
		t.Errorf("paths %v are placed by nobody", all)
	}
	c.Start(0)
	within(t, "the flow is placed again", placed)
}
