package failover

import (
	"testing"
	"time"

	"golang.org/x/net/bpf"

	"weft/topology"
	"weft/topoupdate"
)

// updateOf returns a packet, from its IP header on, in which a switch says that its
// port is down.
func updateOf(t *testing.T, top *topology.Topology, name string, port int) []byte {
	t.Helper()
	n, err := top.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	a, err := topoupdate.NewAgent(topoupdate.AgentConfig{Topology: top, Self: n.ID, Boot: 1})
	if err != nil {
		t.Fatal(err)
	}
	a.Carrier(port, false, 0)
	a.Tick(0)
	b := make([]byte, updateHeaders)
	b[0], b[9] = 0x45, 17
	b[22], b[23] = topoupdate.Port>>8, topoupdate.Port&0xff
	a.Send(func(to int, message []byte) {
		if message[updateType] == isUpdate && len(b) == updateHeaders {
			b = append(b, message...)
		}
	})
	if len(b) == updateHeaders {
		t.Fatal("the agent said nothing")
	}
	return b
}

func TestUpdateTap_namesWhatAnUpdateIsAbout(t *testing.T) {
	top := parse(t, "fat-tree:k=4")
	packet := updateOf(t, top, "e0.0", 2) // to its servers
	vm, err := bpf.NewVM(updateFilter)
	if err != nil {
		t.Fatal(err)
	}
	run := func(b []byte) bool { n, err := vm.Run(b); return err == nil && n > 0 }
	hello := append([]byte(nil), packet...)
	hello[updateHeaders+updateType] = 1
	other := append([]byte(nil), packet...)
	other[23]++
	if !run(packet) || run(hello) || run(other) {
		t.Errorf("taken: update %v, hello %v, another port %v", run(packet), run(hello), run(other))
	}
	if got := originators(top, packet[updateHeaders:]); got != "e0.0:04" {
		t.Errorf("about %q", got)
	}
	for n := range packet {
		originators(top, packet[min(n, updateHeaders):n]) // whatever is cut off
	}
}

func TestCarrierLine_comesBackAsItWas(t *testing.T) {
	e := traceEvent{At: time.Unix(12, 34567), Node: "c1.1", What: traceCarrier, Of: "p3 down"}
	if got, ok := parseCarrier(formatCarrier(e)); !ok || got != e {
		t.Errorf("%+v %v, want %+v", got, ok, e)
	}
	for _, line := range []string{"", "ready", "carrier\tx\tc1.1\tp3 down", "carrier\t1\tc1.1"} {
		if _, ok := parseCarrier(line); ok {
			t.Errorf("%q was taken", line)
		}
	}
}
