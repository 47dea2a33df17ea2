package listen

import (
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/lab"
	"weft/topology"
	"weft/topoupdate"
	"weft/topoupdate/wire"
)

// rack is a host and its edge switch, whose agent the test plays.
type rack struct {
	t     *testing.T
	lab   *lab.Lab
	top   *topology.Topology
	host  topology.Node
	edge  topology.Node
	agent *topoupdate.Agent
	ports *wire.Ports
	start time.Time
	keys  topoupdate.Keys
}

func newRack(t *testing.T, letter string) *rack {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: builds a lab in network namespaces")
	}
	top, err := topology.Parse("fat-tree:k=4")
	if err != nil {
		t.Fatal(err)
	}
	r := &rack{t: t, top: top, start: time.Now(), keys: topoupdate.Keys{List: []topoupdate.Key{{ID: 1, Secret: make([]byte, 32)}}}}
	r.host, _ = top.Lookup("h0.0.2")
	r.edge, _ = top.Lookup("e0.0")
	r.lab, err = lab.Hold(t.Context(), lab.Config{Name: fmt.Sprintf("td%d%s", os.Getpid(), letter), Topology: top, Only: []topology.NodeID{r.host.ID, r.edge.ID}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.lab.Close(); err != nil {
			t.Error(err)
		}
	})
	r.do(r.edge.ID, func() (err error) {
		r.ports, err = wire.Open(wire.Config{Interfaces: []string{"p0"}})
		return err
	})
	t.Cleanup(func() { r.ports.Close() })
	r.reset()
	return r
}

func (r *rack) do(id topology.NodeID, f func() error) {
	r.t.Helper()
	if err := r.lab.Do(id, f); err != nil {
		r.t.Fatal(err)
	}
}

// reset starts the switch's agent anew.
func (r *rack) reset() {
	var err error
	r.agent, err = topoupdate.NewAgent(topoupdate.AgentConfig{Topology: r.top, Self: r.edge.ID, Boot: uint64(time.Now().UnixNano()), Keys: r.keys})
	if err != nil {
		r.t.Fatal(err)
	}
	r.send()
}

// uplink sets the carrier of one of the switch's uplinks, which are ports 2 and 3.
func (r *rack) uplink(port int, up bool) {
	r.agent.Carrier(port, up, time.Since(r.start))
	r.send()
}

func (r *rack) send() {
	r.agent.Tick(time.Since(r.start))
	r.agent.Send(func(port int, b []byte) {
		if port == 0 {
			r.ports.Send(0, b)
		}
	})
}

func (r *rack) config(deliver func(*topology.Topology)) Config {
	return Config{Interface: "p0", Topology: r.top, Address: r.host.Addr, Deliver: deliver, Keys: r.keys}
}

func (r *rack) open(c Config) *Listener {
	r.t.Helper()
	var l *Listener
	r.do(r.host.ID, func() (err error) { l, err = Open(c); return err })
	r.t.Cleanup(func() { l.Close() })
	return l
}

func (r *rack) within(what string, ok func() bool) {
	r.t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatalf("never: %s", what)
		}
		r.send() // what is due
	}
}

func TestListener_deliversWhatChanges(t *testing.T) {
	r := newRack(t, "a")
	got := make(chan []string, 100)
	l := r.open(r.config(func(t *topology.Topology) {
		names := []string{}
		for _, id := range t.Down() {
			names = append(names, t.LinkName(id))
		}
		got <- names
	}))
	if s := l.Status(); s.Heard != -1 || len(s.Down) > 0 || l.Topology() != r.top {
		t.Errorf("in the beginning: %+v", s)
	}
	next := func() []string {
		t.Helper()
		r.within("a delivery", func() bool { return len(got) > 0 })
		return <-got
	}
	r.uplink(2, false)
	if down := next(); !slices.Equal(down, []string{"e0.0-a0.2"}) {
		t.Errorf("delivered %v", down)
	}
	r.within("repetitions", func() bool { return l.Status().Received > 3 })
	r.uplink(3, false)
	if down := next(); !slices.Equal(down, []string{"e0.0-a0.2", "e0.0-a0.3"}) {
		t.Errorf("delivered %v", down)
	}
	if s := l.Status(); !s.Carrier || s.Heard < 0 || s.Switches != 1 || !slices.Equal(s.Down, []string{"e0.0-a0.2", "e0.0-a0.3"}) {
		t.Errorf("status %+v", s)
	}
	r.uplink(3, true)
	r.reset()
	r.within("all is up", func() bool { return len(l.Topology().Down()) == 0 })
	for down := next(); len(down) > 0; down = next() { // until the last delivery
	}
}

// While Deliver runs nothing is delivered, and afterwards only the newest.
func TestListener_slowDelivery(t *testing.T) {
	r := newRack(t, "b")
	entered, leave := make(chan *topology.Topology), make(chan bool)
	l := r.open(r.config(func(t *topology.Topology) {
		entered <- t
		<-leave
	}))
	r.uplink(2, false)
	<-entered
	r.uplink(3, false)
	leave <- true
	if last := <-entered; len(last.Down()) != 2 {
		t.Errorf("delivered %v", last.Down())
	}
	ended := make(chan error)
	go func() { ended <- l.Close() }()
	select {
	case <-ended:
		t.Error("Close did not wait for Deliver")
	case leave <- true:
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestListener_severalOnOneInterface(t *testing.T) {
	r := newRack(t, "c")
	nobody := func(*topology.Topology) {}
	c := r.config(nobody)
	c.Address = r.top.EmbeddedAddr(r.host.ID)
	one, two := r.open(r.config(nobody)), r.open(c)
	r.uplink(2, false)
	for _, l := range []*Listener{one, two} {
		r.within("both hear", func() bool { return len(l.Topology().Down()) == 1 })
	}
}

func TestListener_closeLeaksNothing(t *testing.T) {
	r := newRack(t, "d")
	files := func() int {
		d, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(d)
	}
	life := func() {
		l := r.open(r.config(func(*topology.Topology) {}))
		for range 2 {
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		}
		if s := l.Status(); s.Error != "" {
			t.Errorf("an orderly end is an error: %s", s.Error)
		}
	}
	life()
	goroutines, descriptors := runtime.NumGoroutine(), files()
	for range 20 {
		life()
	}
	r.within("goroutines end", func() bool { return runtime.NumGoroutine() <= goroutines })
	r.within("descriptors are closed", func() bool { return files() <= descriptors })
}

// What is missed while the port is down is heard when it is up again.
func TestListener_survivesAPortThatGoesDown(t *testing.T) {
	r := newRack(t, "e")
	l := r.open(r.config(func(*topology.Topology) {}))
	set := func(up bool) {
		r.do(r.host.ID, func() error {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			req, err := unix.NewIfreq("p0")
			if err != nil {
				return err
			}
			if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, req); err != nil {
				return err
			}
			req.SetUint16(req.Uint16() &^ unix.IFF_UP)
			if up {
				req.SetUint16(req.Uint16() | unix.IFF_UP)
			}
			return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, req)
		})
	}
	set(false)
	r.within("the carrier is lost", func() bool { return !l.Status().Carrier })
	r.uplink(2, false)
	set(true)
	r.within("the carrier is back", func() bool { return l.Status().Carrier })
	r.within("it hears what it has missed", func() bool { return len(l.Topology().Down()) == 1 })
}

func TestOpen_bad(t *testing.T) {
	top, err := topology.Parse("fat-tree:k=4")
	if err != nil {
		t.Fatal(err)
	}
	nobody := func(*topology.Topology) {}
	host := netip.MustParseAddr("10.0.0.2")
	for want, c := range map[string]Config{
		"Topology is missing":         {},
		"Deliver is missing":          {Topology: top},
		"is no host of fat-tree":      {Topology: top, Deliver: nobody, Address: netip.MustParseAddr("10.0.0.1")},
		"Keys.List[0]":                {Topology: top, Deliver: nobody, Address: host, Keys: topoupdate.Keys{List: make([]topoupdate.Key, 1)}},
		`Interface "nosuch": no such`: {Topology: top, Deliver: nobody, Address: host, Interface: "nosuch"},
	} {
		l, err := Open(c)
		if err == nil {
			l.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}
