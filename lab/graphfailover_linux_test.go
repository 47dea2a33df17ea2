package lab

import (
	"encoding/binary"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"weft/internal/kernel/kerneltest"
	"weft/topology"
	"weft/topology/graph"
)

// BenchmarkGraph_failover measures how long the kernels of a fabric with BGP go on sending
// into a link that has failed behind the sender's leaf: from the failure to when the last
// datagram was sent that was lost, of a stream of 5,000 a second in 50 flows by two spines.
//
//	go test ./lab -run '^$' -bench Graph_failover -benchtime 30x
func BenchmarkGraph_failover(b *testing.B) {
	for _, c := range []struct {
		name string
		bfd  bool
		mode FailureMode
	}{{"loud", false, FailLoud}, {"loud-bfd", true, FailLoud}, {"silent", false, FailSilent}, {"silent-bfd", true, FailSilent}} {
		b.Run(c.name, func(b *testing.B) {
			kerneltest.NeedRoot(b)
			l := upLab(b, Config{Name: kerneltest.LabName("q"), Graph: operators(b, "leaf-spine:leaves=2,spines=2,hosts=1", 1), BFD: c.bfd, RateMbit: 100})
			var took []time.Duration
			for b.Loop() {
				took = append(took, intoTheHole(b, l, c.mode))
			}
			slices.Sort(took)
			b.ReportMetric(0, "ns/op") // it is that of waiting
			for name, i := range map[string]int{"min-ms": 0, "median-ms": len(took) / 2, "max-ms": len(took) - 1} {
				b.ReportMetric(float64(took[i])/1e6, name)
			}
		})
	}
}

// intoTheHole lets the link from the first spine to the second leaf fail during a stream
// from the first to the second host.
func intoTheHole(b *testing.B, l *Lab, mode FailureMode) time.Duration {
	b.Helper()
	const (
		flows = 50
		every = 200 * time.Microsecond
	)
	var server *net.UDPConn
	do := func(node string, f func() error) {
		b.Helper()
		if err := l.Do(l.mustLookup(b, node), f); err != nil {
			b.Fatal(err)
		}
	}
	to := netip.AddrPortFrom(l.addresses(b, "h2-1")[0], 9)
	do("h2-1", func() (err error) {
		server, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(to))
		return err
	})
	defer server.Close()
	var clients []*net.UDPConn
	do("h1-1", func() error {
		for range flows {
			c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to))
			if err != nil {
				return err
			}
			clients = append(clients, c)
		}
		return nil
	})
	limit := 2 * time.Second
	if mode != FailLoud {
		limit = 20 * time.Second // BGP's own timer has 9
	}
	sent := make([]time.Time, 0, int(limit/every)+1)
	arrived := make([]bool, cap(sent))
	received := make(chan struct{})
	go func() {
		defer close(received)
		for p := make([]byte, 8); ; {
			if _, err := server.Read(p); err != nil {
				return
			}
			if n := binary.BigEndian.Uint64(p); n < uint64(len(arrived)) {
				arrived[n] = true
			}
		}
	}()
	begin := time.Now()
	failed := make(chan time.Time, 1)
	go func() {
		time.Sleep(200 * time.Millisecond)
		at, err := l.Fail("spine1-leaf2", mode)
		if err != nil {
			b.Error(err)
		}
		failed <- at
	}()
	for time.Since(begin) < limit && len(sent) < cap(sent) {
		clients[len(sent)%flows].Write(binary.BigEndian.AppendUint64(nil, uint64(len(sent)))) // errors are the ICMP ones of failure
		sent = append(sent, time.Now())
		time.Sleep(time.Until(begin.Add(time.Duration(len(sent)) * every)))
	}
	for _, c := range clients {
		c.Close()
	}
	time.Sleep(200 * time.Millisecond) // the last ones arrive
	server.Close()
	<-received
	at := <-failed
	last := at
	for n, when := range sent {
		if !arrived[n] && when.After(last) {
			last = when
		}
	}
	if sent[len(sent)-1].Sub(last) < limit/10 {
		late := 0
		for n, when := range sent {
			if !arrived[n] && sent[len(sent)-1].Sub(when) < limit/10 {
				late++
			}
		}
		b.Errorf("%d datagrams of the end are lost; the last one %v after the failure", late, last.Sub(at))
	}
	if _, err := l.Heal(); err != nil {
		b.Fatal(err)
	}
	want := ways(l.Config.Graph, func(graph.LinkID) bool { return false })
	for id := range want {
		kerneltest.Within(b, kerneltest.Patience, "all routes again", func() bool {
			have, err := l.Config.routes(topology.NodeID(id))
			return err == nil && lacks(have, want[id]) == ""
		})
	}
	return last.Sub(at)
}
