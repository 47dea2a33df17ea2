package main

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"weft/lab"
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

func TestGRPC_overAFabric(t *testing.T) {
	if err := lab.CanBuild(); err != nil {
		t.Skipf("builds a lab of network namespaces: %v", err)
	}
	top, err := topology.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	lab, err := lab.Hold(context.Background(), lab.Config{
		Name: "exgrpc", Topology: top, Unlimited: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := lab.Close(); err != nil {
			t.Error(err)
		}
	}()
	var hosts []*stack.Host
	for _, name := range []string{"h0.0.2", "h3.1.3"} {
		n, err := top.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		err = lab.Do(n.ID, func() error {
			h, err := open(spec, top.EmbeddedAddr(n.ID).String(), "presto")
			hosts = append(hosts, h)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		defer hosts[len(hosts)-1].Close()
	}
	checkOver(t, hosts[0], hosts[1])
}
