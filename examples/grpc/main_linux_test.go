package main

import (
	"context"
	"fmt"
	"os"
	"testing"

	"weft/lab"
	"weft/stack"
	"weft/topology"
)

func TestGRPC_overAFabric(t *testing.T) {
	if err := lab.CanBuild(); err != nil {
		t.Skipf("builds a lab of network namespaces: %v", err)
	}
	top, err := topology.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	lab, err := lab.Hold(context.Background(), lab.Config{
		Name: fmt.Sprintf("exgrpc%d", os.Getpid()), Topology: top, Unlimited: true,
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
