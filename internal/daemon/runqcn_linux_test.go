package daemon

import (
	"encoding/base64"
	"io"
	"net"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"weft/internal/kernel/kerneltest"
	"weft/internal/slowtest"
)

// A switch whose queue is too long has a host, which has given its privileges away, slow its
// connection, whatever carries its packets; the messages are signed. When the host's daemon
// ends, the connection is free again; if it is killed, when the next one starts, though that one
// slows nobody.
func TestRun_qcnSlowsAConnection(t *testing.T) {
	for name, end := range map[string]func(*testing.T, *network, *child){
		"ended": func(_ *testing.T, _ *network, host *child) { host.end(unix.SIGTERM) },
		"killed": func(t *testing.T, n *network, host *child) {
			host.end(unix.SIGKILL)
			next := n.start("h0.0.2", "topology: fat-tree:k=4\nmode: offload\npolicy: drb\nqcn: {enabled: false}\nfailures: {updates: false}\n")
			if m := next.messages(); !strings.Contains(m, "not any more: 1") {
				t.Errorf("the next run says %s", m)
			}
			next.end(unix.SIGTERM)
		},
	} {
		t.Run(name, func(t *testing.T) { testSlowed(t, end) })
	}
}

func testSlowed(t *testing.T, end func(*testing.T, *network, *child)) {
	slowtest.System(t)
	n := sharedNetwork(t)
	key := "{id: 3, key: " + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 32))) + "}"
	sw := n.launch("e0.0", "topology: fat-tree:k=4\nkeys: ["+key+"]\nmeter: {enabled: true, rate_mbit: 5, qcn: {target: 3000}}\n", childSwitch+"=1")
	sw.waitFor("hellos every")
	defer sw.end(unix.SIGTERM)
	host := n.start("h0.0.2", "topology: fat-tree:k=4\nmode: offload\npolicy: drb\nqcn: {enabled: true, limit_mbit: 1000, floor_mbit: 0.1}\nfailures: {updates: false, keys: ["+key+"]}\n")
	if m := host.messages(); !strings.Contains(m, "connections slow down to 0.1 Mbit/s") {
		t.Fatalf("the daemon says %s", m)
	}
	p := n.connect("h0.0.2", "h3.1.3")
	go io.Copy(io.Discard, p.b)
	go func() {
		for b := make([]byte, 1<<16); ; {
			if _, err := p.a.Write(b); err != nil {
				return
			}
		}
	}()
	highest := func() (n int) {
		raw, err := p.a.(*net.TCPConn).SyscallConn()
		if err == nil {
			err = raw.Control(func(fd uintptr) { n, _ = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE) })
		}
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	slowed := false
	// It may be slowed before its paths are proved, while its packets go plain.
	kerneltest.Within(t, kerneltest.Patience, "a connection by paths is slowed", func() bool {
		s := host.status()
		slowed = slowed || uint32(highest()) != 1<<32-1
		return slowed && number(s, "qcn.believed") > 0 && number(s, "offload.encapsulated") > 0
	})
	if s := host.status(); s["qcn.malformed"] != "0" {
		t.Errorf("status %v", s)
	}
	end(t, n, host)
	if got := uint32(highest()); got != 1<<32-1 {
		t.Errorf("limited to %d bytes/s when the daemon has ended", got)
	}
}
