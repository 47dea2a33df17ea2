package session

import (
	"net"
	"net/netip"
	"runtime"
	"syscall"
	"testing"
	"time"

	packet "github.com/osrg/gobgp/v4/pkg/packet/bgp"

	"weft/internal/slowtest"
	"weft/topology/graph"
	"weft/topoupdate/bgp"
)

// floodConn is a switch at the other end of a TCP connection, which says what a test has it
// say. GoBGP's server keeps its settings in global variables, so that only one can be in
// this process.
type floodConn struct {
	t *testing.T
	net.Conn
}

// acceptFlood takes a host's session, as AS 65101 with add-path.
func acceptFlood(t *testing.T, l net.Listener) floodConn {
	t.Helper()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	f := floodConn{t, c}
	caps := []packet.ParameterCapabilityInterface{packet.NewCapMultiProtocol(packet.RF_IPv4_UC), packet.NewCapFourOctetASNumber(65101),
		packet.NewCapAddPath([]*packet.CapAddPathTuple{packet.NewCapAddPathTuple(packet.RF_IPv4_UC, packet.BGP_ADD_PATH_SEND)})}
	open, err := packet.NewBGPOpenMessage(65101, 90, netip.MustParseAddr("192.168.1.1"), []packet.OptionParameterInterface{packet.NewOptionParameterCapability(caps)})
	if err != nil {
		t.Fatal(err)
	}
	f.send(open)
	f.send(packet.NewBGPKeepAliveMessage())
	go func() { // what the host says is read and forgotten
		for b := make([]byte, 4096); ; {
			if _, err := c.Read(b); err != nil {
				return
			}
		}
	}()
	return f
}

var addPath = &packet.MarshallingOption{AddPath: map[packet.Family]packet.BGPAddPathMode{packet.RF_IPv4_UC: packet.BGP_ADD_PATH_SEND}}

func (f floodConn) send(m *packet.BGPMessage) {
	f.t.Helper()
	b, err := m.Serialize(addPath)
	if err == nil {
		_, err = f.Write(b)
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

// announce announces prefixes by some paths, or withdraws them, up to 200 a message.
func (f floodConn) announce(prefixes []netip.Prefix, paths uint32, withdraw bool) {
	f.t.Helper()
	for id := range paths {
		for n := 0; n < len(prefixes); n += 200 {
			var list []packet.PathNLRI
			for _, p := range prefixes[n:min(n+200, len(prefixes))] {
				nlri, err := packet.NewIPAddrPrefix(p)
				if err != nil {
					f.t.Fatal(err)
				}
				list = append(list, packet.PathNLRI{NLRI: nlri, ID: id + 1})
			}
			if withdraw {
				f.send(packet.NewBGPUpdateMessage(list, nil, nil))
				continue
			}
			hop, err := packet.NewPathAttributeNextHop(netip.MustParseAddr("127.0.0.9"))
			if err != nil {
				f.t.Fatal(err)
			}
			path := packet.NewAs4PathParam(packet.BGP_ASPATH_ATTR_TYPE_SEQ, []uint32{65101, 65001 + id, 65102})
			f.send(packet.NewBGPUpdateMessage(nil, []packet.PathAttributeInterface{packet.NewPathAttributeOrigin(0),
				packet.NewPathAttributeAsPath([]packet.AsPathParamInterface{path}), hop}, list))
		}
	}
}

// cpu is the processor time that this process has used.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// heap is the memory in use, in MB.
func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / 1e6
}

// A switch announces 100,000 prefixes, has 1,000 a second come and go, and then sends more
// than there is place for. What the host keeps and makes of it is bounded.
func TestSession_flood(t *testing.T) {
	slowtest.System(t)
	l, err := net.Listen("tcp4", "127.0.0.9:179")
	if err != nil {
		t.Skipf("a switch's port: %v", err)
	}
	defer l.Close()
	changed := make(chan struct{}, 1)
	leaf := netip.MustParseAddr("127.0.0.9")
	before := heap()
	s, err := Open(Config{AS: 4200000001, RouterID: netip.MustParseAddr("192.168.1.2"), Neighbors: []Neighbor{{Addr: leaf, AS: 65101}},
		Changed: func() {
			select {
			case changed <- struct{}{}:
			default:
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	f := acceptFlood(t, l)
	defer f.Close()
	all := make([]netip.Prefix, 100_000)
	for i := range all {
		all[i] = netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), byte(i>>16) << 4}), 28)
	}
	routes := func() int { return s.Status().Neighbors[0].Routes }
	until := func(what string, holds func() bool) {
		t.Helper()
		for end := time.Now().Add(time.Minute); !holds(); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("not within a minute: %s; %d routes, %+v", what, routes(), s.Status())
			}
		}
	}
	used := cpu()
	f.announce(all, 1, false)
	until("100,000 routes", func() bool { return routes() == len(all) })
	t.Logf("100,000 prefixes: %v of processor time, %.0f MB", cpu()-used, heap()-before)
	self := bgp.Host{Name: "h", Addresses: []netip.Addr{netip.MustParseAddr("192.168.1.2")}}
	used = cpu()
	spec, doubts := s.Spec(self)
	if _, err := graph.New(spec); err != nil {
		t.Fatal(err)
	}
	t.Logf("a graph of them: %v; %q", cpu()-used, doubts)

	used = cpu()
	began, woken := time.Now(), 0
	for time.Since(began) < 5*time.Second {
		n := 1000 * int(time.Since(began)/time.Second)
		for i := n; i < n+1000; i += 100 {
			f.announce(all[i:i+100], 1, true)
			f.announce(all[i:i+100], 1, false)
			time.Sleep(90 * time.Millisecond)
			select {
			case <-changed:
				woken++
			default:
			}
		}
	}
	until("100,000 routes again", func() bool { return routes() == len(all) })
	t.Logf("1,000 a second that come and go, for %v: %v of processor time, %.0f MB, %d times news", time.Since(began), cpu()-used, heap()-before, woken)

	f.announce(all[:50_000], 6, false)
	until("the session ends", func() bool { return !s.Status().Neighbors[0].Established })
	st := s.Status()
	if n := routes(); n > bgp.MaxRoutes || st.Neighbors[0].Why == "" {
		t.Errorf("%d routes, %+v", n, st)
	}
	t.Logf("too many: %d routes, %.0f MB; %s", routes(), heap()-before, st.Neighbors[0].Why)
	if spec, _ := s.Spec(self); len(spec.Nodes) < 3 {
		t.Errorf("what was heard does not hold: %d nodes", len(spec.Nodes))
	}
}
