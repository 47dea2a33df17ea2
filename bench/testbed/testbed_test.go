package testbed

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"weft/encap"
	"weft/internal/slowtest"
	"weft/lab"
	"weft/resequencer"
	"weft/stack"
	"weft/topology"
)

func TestSelect_unknownListsTheKnown(t *testing.T) {
	_, err := Select([]string{"drb", "best"})
	if err == nil || !strings.Contains(err.Error(), `"best"`) || !strings.Contains(err.Error(), "kernel-ecmp, kernel-mptcp, kernel-drb, host-auto, gateway-presto, ecmp, rb, rrb, drb") {
		t.Errorf("error %v", err)
	}
	if rows, err := Select([]string{"drb", "kernel-ecmp"}); err != nil || len(rows) != 2 || rows[0].Name != "drb" {
		t.Errorf("%v, %v", rows, err)
	}
}

// Hosts that send each flow by one path take every hole for a loss.
func TestConfigure_policiesOfFlowsHoldNothing(t *testing.T) {
	top, err := topology.Parse("fat-tree:k=4")
	if err != nil {
		t.Fatal(err)
	}
	c := Config{Topology: top, RateMbit: 10, Resequencer: resequencer.Config{Discipline: resequencer.Juggler, MinHold: time.Millisecond}}
	for _, row := range Rows() {
		if row.Kernel {
			continue
		}
		var sc stack.Config
		c.Configure(row, top.Node(0), &sc)
		want := c.Resequencer
		if row.Name == "ecmp" {
			want.Discipline = resequencer.Off
		}
		if sc.Resequencer != want {
			t.Errorf("%s: %+v, want %+v", row.Name, sc.Resequencer, want)
		}
	}
}

// exchange sends bytes from the first host to the last and checks the counters.
func exchange(t *testing.T, bed Testbed, row Row, c Config) {
	t.Helper()
	s, err := bed.Start(context.Background(), row)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	from, to := s.Hosts[0], s.Hosts[len(s.Hosts)-1]
	l, err := to.Listen("tcp", net.JoinHostPort(to.Address, "5001"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	const size = 200_000
	got := make(chan int64, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			got <- -1
			return
		}
		defer conn.Close()
		n, _ := io.Copy(io.Discard, conn)
		got <- n
	}()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	conn, err := from.DialContext(ctx, "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	conn.SetDeadline(time.Now().Add(time.Minute))
	if _, err := conn.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	conn.Close()
	if n := <-got; n != size {
		t.Fatalf("%d bytes arrived, want %d", n, size)
	}
	counters, err := s.Counters()
	if err != nil {
		t.Fatal(err)
	}
	path, _ := c.Topology.Path(0, topology.NodeID(c.Topology.NumHosts()-1), c.Topology.Paths(0, topology.NodeID(c.Topology.NumHosts()-1)).Bounce(0))
	first, last := path.Links[0], path.Links[len(path.Links)-1]
	if up := counters.Links[first].Up; up < size || up > 2*size {
		t.Errorf("the sender's link carried %d bytes up, for %d of payload", up, size)
	}
	if down := counters.Links[last].Down; down < size || down > 2*size {
		t.Errorf("the receiver's link carried %d bytes down, for %d of payload", down, size)
	}
}

func TestInMemory_refusesWhatItHasNot(t *testing.T) {
	fatTree, _ := topology.FatTree(4)
	rows, err := Select([]string{"drb"})
	if err != nil {
		t.Fatal(err)
	}
	m := &lab.Meter{}
	m.RED.MaxP = 0.1
	for want, c := range map[string]Config{"do not balance": {Balance: "drill"}, "Meter.RED": {Meter: m}} {
		c.Topology, c.RateMbit = fatTree, 50
		if s, err := InMemory(c).Start(t.Context(), rows[0]); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v", want, s, err)
		}
	}
}

func TestInMemory_everyRow(t *testing.T) {
	fatTree, _ := topology.FatTree(4)
	c := Config{Topology: fatTree, RateMbit: 50, Seed: 1, Carrier: encap.CarrierSRv6, Meter: &lab.Meter{}}
	bed := InMemory(c)
	for _, row := range Rows() {
		if row.Kernel {
			if bed.Supports(row) == nil {
				t.Errorf("%s is said to run in memory", row.Name)
			}
			continue
		}
		t.Run(row.Name, func(t *testing.T) { exchange(t, bed, row, c) })
	}
}

func TestInNamespaces_everyRow(t *testing.T) {
	slowtest.System(t)
	if os.Geteuid() != 0 {
		t.Skip("needs root: builds a lab of network namespaces")
	}
	exchangeAll(t, encap.CarrierIPIP, Rows())
}

// How hosts take every row to labels is tested in memory.
func TestInNamespaces_labels(t *testing.T) {
	slowtest.System(t)
	if os.Geteuid() != 0 {
		t.Skip("needs root: builds a lab of network namespaces")
	}
	rows, err := Select([]string{"kernel-drb", "gateway-presto", "drb", "luopan"})
	if err != nil {
		t.Fatal(err)
	}
	exchangeAll(t, encap.CarrierSRv6, rows)
}

func exchangeAll(t *testing.T, carrier encap.Carrier, rows []Row) {
	t.Helper()
	fatTree, _ := topology.FatTree(4)
	c := Config{Topology: fatTree, RateMbit: 50, Seed: 1, Carrier: carrier, Meter: &lab.Meter{}}
	bed, err := InNamespaces(context.Background(), fmt.Sprintf("t%dt", os.Getpid()), c, nil) // as kerneltest.LabName
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := bed.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, row := range rows {
		t.Run(row.Name, func(t *testing.T) {
			if err := bed.Supports(row); err != nil {
				t.Skip(err)
			}
			exchange(t, bed, row, c)
		})
	}
}
