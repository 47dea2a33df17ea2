package wire

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"weft/topoupdate"
)

// BenchmarkReceive is the cost of a reported flow until a Desk hands it on, with its share of
// a message's MAC; refused are those above the node's budget.
func BenchmarkReceive(b *testing.B) {
	var rng uint64
	next := func() uint64 { rng += 0x9e3779b97f4a7c15; return rng }
	node, err := NewNode(NodeConfig{Fabric: 5, Address: hostAddr, Servers: serverAt[:1], Keys: secret, Random: next}, 0)
	if err != nil {
		b.Fatal(err)
	}
	desk, err := NewDesk(DeskConfig{Fabric: 5, Keys: secret, Known: func(netip.Addr) bool { return true }, Random: next})
	if err != nil {
		b.Fatal(err)
	}
	desk.Lead(true, serverAt[0], 1)
	answer := func(to netip.AddrPort, m []byte) { node.Receive(bytes.Clone(m), serverAt[0], 0) }
	for i := range time.Duration(2) {
		node.Poll(i*HelloEvery, func(_ netip.AddrPort, m []byte) { desk.Receive(bytes.Clone(m), hostAt, 0, answer) })
	}
	var flows []Flow
	for n := range 23 {
		flows = append(flows, flowOf(n, false))
	}
	ring, err := topoupdate.NewKeyring(secret)
	if err != nil {
		b.Fatal(err)
	}
	s := &node.servers[0]
	body := appendHeader(nil, &header{kind: typeReport, count: len(flows), fabric: 5, node: hostAddr, session: s.session, heard: s.heard})
	for _, f := range flows {
		body = appendFlow(body, f)
	}
	b.ReportAllocs()
	taken := 0
	for i := 0; i < b.N; i += len(flows) {
		b.StopTimer()
		setCounter(body, uint64(100+i))
		m := ring.Sign(body[:len(body):len(body)], 0)
		b.StartTimer()
		_, got, _ := desk.Receive(m, hostAt, time.Duration(i)*time.Second, nil)
		taken += len(got)
	}
	if taken == 0 {
		b.Fatal("no flow was taken")
	}
}

func setCounter(b []byte, n uint64) {
	for i := range 8 {
		b[atCounter+i] = byte(n >> (56 - 8*i))
	}
}
