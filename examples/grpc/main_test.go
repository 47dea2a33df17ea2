package main

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"weft/link"
	"weft/stack"
	"weft/topology"
)

const spec = "fat-tree:k=4"

// checkOver runs server and client on two Hosts.
func checkOver(t *testing.T, client, server *stack.Host) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, server, ":50051") }()
	// The client waits for nobody: it is refused until the server listens.
	target := netip.AddrPortFrom(server.Address(), 50051).String()
	err := check(ctx, client, target, 1)
	for ctx.Err() == nil && err != nil {
		time.Sleep(10 * time.Millisecond)
		err = check(ctx, client, target, 1)
	}
	if err == nil {
		err = check(ctx, client, target, 100)
	}
	if err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("serve: %v", err)
	}
}

func TestGRPC_inMemory(t *testing.T) {
	top, err := topology.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	var hosts []*stack.Host
	a, b := link.NewPair(1500, 0)
	for i, d := range []*link.Memory{a, b} { // of one rack: nobody need decapsulate
		h, err := stack.New(stack.Config{Address: top.EmbeddedAddr(topology.NodeID(i)), Topology: top, Device: d})
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		hosts = append(hosts, h)
	}
	checkOver(t, hosts[0], hosts[1])
}
