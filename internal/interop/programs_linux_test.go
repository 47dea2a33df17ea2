package interop

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/slowtest"
)

// Programs that know nothing of weft, between two hosts that have it and one that
// does not.
func TestGateway_programs(t *testing.T) {
	slowtest.System(t)
	n := newNetwork(t, "a")
	before := n.configuration(hostA)
	a, b := n.weft(hostA, "policy: presto\n"), n.weft(hostB, "policy: presto\n")
	for _, to := range [][2]string{{hostA, hostB}, {hostA, plain}, {plain, hostA}} {
		from, to := to[0], to[1]
		sizes, seconds := webFiles, slowtest.Choose("2", "60")
		if from == plain || to == plain {
			sizes, seconds = webFiles[:3], "1"
		}
		name := map[string]string{hostA: "weft", hostB: "weft", plain: "plain"}
		n.Run(name[from]+" to "+name[to], func(t *testing.T) {
			n := &network{t, n.lab, n.dir}
			n.run("iperf3", []string{"iperf3"}, func(n *network) { n.iperf(from, to, n.addr(to)) })
			n.run("curl", []string{"curl", "nginx"}, func(n *network) { n.web(from, to, n.addr(to), sizes) })
			n.run("scp", []string{"scp", "sshd", "ssh-keygen"}, func(n *network) { n.secureCopy(from, to, n.addr(to)) })
			n.run("nc", []string{"nc"}, func(n *network) { n.datagrams(from, to, n.addr(to)) })
			n.run("ping", []string{"ping"}, func(n *network) { n.pings(from, to, 1480) })
			n.run("traceroute", []string{"traceroute"}, func(n *network) { n.trace(from, to) })
			n.run("short connections", nil, func(n *network) { n.shortConnections(from, to, n.addr(to), seconds) })
			n.run("segment size", nil, func(n *network) { n.segmentSize(from, to) })
		})
	}
	n.run("own address", nil, func(n *network) { n.connect(hostA, hostA, n.addr(hostA)).exchange(10_000_000) })
	n.run("transfer", nil, func(n *network) {
		p := n.connect(hostA, hostB, n.addr(hostB))
		if err := p.send(p.a, p.b, slowtest.Choose[int64](300e6, 10e9)); err != nil {
			n.Error(err)
		}
	})
	for _, d := range []*daemon{a, b} {
		for _, field := range []string{"dataplane.ingress.malformed", "dataplane.ingress.bad_checksum", "dataplane.egress.malformed", "dataplane.egress.no_path", "dataplane.egress.too_long"} {
			if c := d.count(field); c != 0 {
				t.Errorf("%s: %s is %d", d.node, field, c)
			}
		}
		if taken, supers := d.count("steer.taken"), d.count("dataplane.ingress.supers"); taken < 1000 || supers < 100 {
			t.Errorf("%s: took %d packets, %d of them super-segments", d.node, taken, supers)
		}
		d.end(syscall.SIGTERM)
	}
	n.wantUnchanged(hostA, before)
}

// iperf runs iperf3 in both directions, with one connection and with several.
func (n *network) iperf(from, to, addr string) {
	for _, args := range [][]string{nil, {"-R"}, {"-P", "4"}} {
		server := n.start(to, "iperf3", "-s", "-1", "-B", addr)
		n.listens(to, "5201")
		out := n.must(from, append([]string{"iperf3", "-c", addr, "-C", "cubic", "-J", slowtest.Choose("-n", "-t"), slowtest.Choose("50M", "10")}, args...)...)
		if _, err := server.wait(); err != nil {
			n.Errorf("iperf3 %v: server: %v\n%s", args, err, server.messages())
		}
		var report struct {
			End struct {
				Sent struct {
					Bytes       int64 `json:"bytes"`
					Retransmits int   `json:"retransmits"`
				} `json:"sum_sent"`
				Received struct {
					Bytes int64   `json:"bytes"`
					Rate  float64 `json:"bits_per_second"`
				} `json:"sum_received"`
				Algorithm string `json:"sender_tcp_congestion"`
			} `json:"end"`
		}
		if err := json.Unmarshal([]byte(out), &report); err != nil {
			n.Fatalf("iperf3 %v: %v\n%s", args, err, out)
		}
		e := report.End
		n.Logf("iperf3 %v: %.2f Gbit/s, %s, %d retransmits", args, e.Received.Rate/1e9, e.Algorithm, e.Sent.Retransmits)
		if e.Received.Bytes < 1e6 || e.Algorithm != "cubic" {
			n.Errorf("iperf3 %v: %+v", args, e)
		}
	}
}

// datagrams talks through two ncs, a line at a time.
func (n *network) datagrams(from, to, addr string) {
	server := n.talker(to, "nc", "-u", "-l", "-n", addr, "7777")
	n.eventually("nc listens", func() bool { return strings.Contains(n.shell(to, "ss -Hlun"), ":7777 ") })
	client := n.talker(from, "nc", "-u", "-n", addr, "7777")
	for i, size := range []int{1, 100, 1400, 1451, 1472, 1473, 4000} {
		line := strings.Repeat(string(rune('a'+i)), size-1) + "\n"
		for _, way := range [][2]*talker{{client, server}, {server, client}} {
			was := len(way[1].stdout.String())
			if _, err := way[0].in.Write([]byte(line)); err != nil {
				n.Fatal(err)
			}
			n.eventually(fmt.Sprintf("%d bytes arrive", size), func() bool { return len(way[1].stdout.String())-was >= size })
			if got := way[1].stdout.String()[was:]; got != line {
				n.Errorf("%d bytes of %q, want %d of %q", len(got), got[:1], size, line[:1])
			}
		}
	}
}

// pings sends echo requests of sizes around the MTU: with the permission to
// fragment all arrive, without only those that fit with an outer header.
func (n *network) pings(from, to string, mtu int) {
	if from == plain {
		mtu = 1500 // which sends without, though the answer comes in fragments
	}
	addr := n.addr(to)
	for _, size := range []int{0, 1400, 1451, 1452, 1453, 1460, 1472, 1473, 1500, 4000} {
		for _, fragments := range []string{"dont", "want", "do"} {
			if size+28 <= mtu || fragments != "do" {
				n.must(from, "ping", "-c", "1", "-w", "30", "-M", fragments, "-s", strconv.Itoa(size), addr)
			}
		}
	}
	out, err := n.start(from, "ping", "-c", "1", "-W", "10", "-M", "do", "-s", strconv.Itoa(mtu-28+1), addr).wait()
	if want := fmt.Sprintf("mtu=%d", mtu); err == nil || !strings.Contains(strings.ReplaceAll(out, " ", ""), want) {
		n.Errorf("ping of %d bytes does not say %s: %v\n%s", mtu+1, want, err, out)
	}
}

// trace looks for the target behind the fabric's hops. The target of datagrams
// answers with ICMP errors, of which a kernel sends one peer six at once and then one
// a second (icmp_ratelimit). For some seconds after the first contact a plain host
// spends all of them on probes of its paths. So a trace that was refused an answer for
// that reason, as the target's kernel counts, is made again; no other is.
func (n *network) trace(from, to string) {
	for _, args := range [][]string{{}, {"-I"}, {"-T", "-p", "9"}} {
		var hops []string
		for try := 0; ; try++ {
			before := n.refusedErrors(to)
			out := n.must(from, append(append([]string{"traceroute", "-n", "-q", "1", "-w", "5", "-m", "12"}, args...), n.addr(to))...)
			hops = strings.Split(strings.TrimSpace(out), "\n")[1:]
			if strings.Contains(hops[len(hops)-1], " "+n.addr(to)+" ") {
				break
			}
			refused := n.refusedErrors(to) - before
			n.Logf("traceroute %v does not reach its target, whose kernel has refused to send %d ICMP errors:\n%s", args, refused, out)
			if refused == 0 || try == 2 {
				n.FailNow()
			}
			time.Sleep(7 * time.Second) // until it may send six again
		}
		var addrs []string
		for _, h := range hops {
			addrs = append(addrs, strings.Fields(h)[1])
		}
		n.Logf("traceroute %v: %v", args, addrs)
	}
}

// refusedErrors is how many ICMP errors the kernel of a node has not sent because
// their peer had its share (Linux 6.1).
func (n *network) refusedErrors(node string) int {
	n.Helper()
	var names []string
	for line := range strings.SplitSeq(n.shell(node, "grep ^Icmp: /proc/net/snmp"), "\n") {
		fields := strings.Fields(line)
		if i := slices.Index(names, "OutRateLimitHost"); i >= 0 && i < len(fields) {
			count, err := strconv.Atoi(fields[i])
			if err != nil {
				n.Fatal(err)
			}
			return count
		}
		names = fields
	}
	return 0
}

// shortConnections opens a thousand connections a second, for so many seconds.
func (n *network) shortConnections(from, to, addr, seconds string) {
	n.self(to, "answer", addr+":7000").says("listening")
	out, err := n.self(from, "load", addr+":7000", "1000", seconds).wait()
	if err != nil {
		n.Errorf("%v\n%s", err, out)
	}
	n.Logf("%s", strings.TrimSpace(out))
}

// segmentSize looks at what both ends of a connection send.
func (n *network) segmentSize(from, to string) {
	p := n.connect(from, to, n.addr(to))
	p.exchange(100_000)
	for i, c := range []syscallConn{p.a, p.b} {
		raw, err := c.SyscallConn()
		if err != nil {
			n.Fatal(err)
		}
		var mss uint32
		raw.Control(func(fd uintptr) {
			var info *unix.TCPInfo
			if info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
				mss = info.Snd_mss
			}
		})
		if err != nil || mss == 0 || mss > 1440 {
			n.Errorf("end %d sends segments of %d bytes (%v), want at most 1440", i, mss, err)
		}
	}
}

type syscallConn interface {
	SyscallConn() (syscall.RawConn, error)
}
