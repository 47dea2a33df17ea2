package schedulerd

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"weft/hedera"
	"weft/hedera/wire"
	"weft/internal/eventlog"
	"weft/topology"
)

// uplink makes the device of updates.interface, or takes it away.
func uplink(t *testing.T, there bool) {
	t.Helper()
	v := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "up0"}, PeerName: "up1"}
	act := netlink.LinkDel
	if there {
		act = netlink.LinkAdd
	}
	if err := act(v); err != nil {
		t.Fatal(err)
	}
}

// without returns a file in which a link is down.
func without(t *testing.T, f *File, link topology.LinkID) *File {
	t.Helper()
	g, err := parse(fmt.Appendf(nil, "topology: %s\nlisten: %v\nrule: first-fit\nupdates: {interface: %s, address: %q}\n%s", testFabric, f.listen, f.Updates.Interface, f.Updates.Address, testKey), "s.yaml")
	if err != nil {
		t.Fatal(err)
	}
	g.top = g.top.Without(link)
	if g.fabric, err = hedera.NewClos(g.top); err != nil {
		t.Fatal(err)
	}
	return g
}

// The device of the updates is away for a moment while the configuration is read again: that is refused,
// and changes nothing. Later it is taken, and updates are heard.
func TestRelisten_afterTheDeviceWasAway(t *testing.T) {
	s, top := newTestServer(t, func(f hedera.Fabric) hedera.Fabric { return f })
	s.file.Updates.Interface, s.file.Updates.Address, s.file.Updates.address = "up0", top.Node(0).Addr.String(), top.Node(0).Addr
	d := &daemon{server: s, file: s.file, start: s.start, log: eventlog.Options{Format: "text", Level: "info"}.To(io.Discard)}
	uplink(t, true)
	if err := d.listen(d.file); err != nil {
		t.Fatal(err)
	}
	defer d.deaf()
	first := d.updates
	dead := top.Paths(0, 8).Path(0).Links[1]
	next := without(t, d.file, dead)
	if !d.file.sameButNews(next) {
		t.Fatal("the files differ in more than a link")
	}
	uplink(t, false)
	if err := d.relisten(next); err == nil {
		t.Error("it listens at a device that is away")
	}
	if d.updates != first || !s.fabric().Live(0, 8, 0) {
		t.Error("a reload that was refused has changed something")
	}
	uplink(t, true)
	defer uplink(t, false)
	if err := d.relisten(without(t, d.file, dead)); err != nil {
		t.Fatal(err)
	}
	if d.updates == nil || d.updates == first || s.fabric().Live(0, 8, 0) {
		t.Error("the configuration is not in force")
	}
}

// A listener that is no more has another one take its place as soon as there is a device for it. What the
// former one had heard counts no more: nobody would say that a link is up again.
func TestHearAgain(t *testing.T) {
	s, top := newTestServer(t, func(f hedera.Fabric) hedera.Fabric { return f })
	s.file.Updates.Interface, s.file.Updates.Address, s.file.Updates.address = "up0", top.Node(0).Addr.String(), top.Node(0).Addr
	var said strings.Builder
	d := &daemon{server: s, file: s.file, start: s.start, log: eventlog.Lines(&said)}
	uplink(t, true)
	if err := d.listen(d.file); err != nil {
		t.Fatal(err)
	}
	first := d.updates
	if d.hearAgain(); d.updates != first || said.String() != "" {
		t.Errorf("one that hears is replaced: %s", said.String())
	}
	if err := s.heard(top.Without(top.Paths(0, 8).Path(0).Links[1])); err != nil || s.fabric().Live(0, 8, 0) {
		t.Fatal(err)
	}
	d.deaf()
	uplink(t, false)
	if d.hearAgain(); d.updates != nil || !strings.Contains(said.String(), "not heard, so links that fail keep their placements") {
		t.Errorf("it hears at a device that is away: %s", said.String())
	}
	uplink(t, true)
	defer uplink(t, false)
	defer d.deaf()
	if d.hearAgain(); d.updates == nil || !s.fabric().Live(0, 8, 0) || !strings.Contains(said.String(), "heard again") {
		t.Errorf("updates %v: %s", d.updates, said.String())
	}
}

// The keys are read again when the topology stays the same: the links that are known to have failed stay
// so, for the leader and for the next one. What is refused changes nothing, keys neither.
func TestServer_renewKeepsWhatWasHeard(t *testing.T) {
	s, top := newTestServer(t, func(f hedera.Fabric) hedera.Fabric { return f })
	h := newHost(t, top, 0, s.file.listen)
	within(t, "a report is taken", func() bool {
		h.client.Send(wire.Report{Flows: []wire.Flow{{Tuple: tupleOf(top, 0, 8), Rate: 900e6}}})
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.loop.Flows() == 1
	})
	placed, _, _ := s.round()
	next, err := parse(fmt.Appendf(nil, "topology: %s\nlisten: %v\nrule: first-fit\n%s", testFabric, s.file.listen, testKey), "s.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.heard(top.Without(top.Paths(0, 8).Path(placed[0].Path).Links[1])); err != nil {
		t.Fatal(err)
	}
	if err := s.renew(next, s.start, true); err != nil {
		t.Fatal(err)
	}
	if s.fabric().Live(0, 8, placed[0].Path) {
		t.Error("a link that has failed is up again")
	}
	if now, _, _ := s.round(); len(now) != 1 || now[0].Path == placed[0].Path {
		t.Errorf("placed %v", now)
	}
	other, err := parse([]byte("topology: \"fat-tree:k=6,host-rate=1000,fabric-rate=1000,core-rate=1000\"\nkeys: [{id: 9, key: b29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb28=}]\n"), "s.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.renew(other, time.Now(), false); err == nil {
		t.Fatal("another fabric is taken")
	}
	before := s.status().Flows
	within(t, "the host's key is still known", func() bool {
		h.client.Send(wire.Report{Flows: []wire.Flow{{Tuple: tupleOf(top, 0, 8), Rate: 900e6}}})
		return s.status().Flows > before
	})
}
