package daemon

import (
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"strings"
	"time"

	netns "weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
)

// podHosts are hosts in four of the fabric's pods, each with two containers behind a bridge.
var podHosts = []string{"h0.0.2", "h1.0.2", "h2.0.2", "h3.0.2"}

// container is a network namespace behind a host. It has an address of Docker's default bridge,
// which is masqueraded and to which a port of the host's leads, and one that the fabric routes.
type container struct {
	host   int // of podHosts
	number int // on its host, from 2
	ns     string
}

func (c container) inside() string    { return fmt.Sprintf("172.17.0.%d", c.number) }
func (c container) routed() string    { return fmt.Sprintf("10.244.%d.%d", c.host, c.number) }
func (c container) published() string { return fmt.Sprint(8000 + c.number) }

// podPrefixes is the list "behind" of the hosts.
func podPrefixes(n *network) string {
	s := "behind:\n"
	for i, h := range podHosts {
		s += fmt.Sprintf("  - {host: %s, prefixes: [10.244.%d.0/24]}\n", n.node(h).Addr, i)
	}
	return s
}

// addContainers puts them behind their hosts as Docker does, with a firewall that lets in only what
// belongs to a connection, is published, or is routed; and routes to their prefixes into the fabric.
func (n *network) addContainers() (all []container) {
	n.Helper()
	if _, err := exec.LookPath("nft"); err != nil {
		n.Skip(err)
	}
	for i, host := range podHosts {
		n.shell(host, fmt.Sprintf(`set -e
			sysctl -qw net.ipv4.ip_forward=1
			ip link add docker0 type bridge
			sysctl -qw net.ipv4.conf.docker0.rp_filter=1 net.ipv4.conf.p0.rp_filter=1
			ip address add 172.17.0.1/16 dev docker0
			ip address add 10.244.%d.1/24 dev docker0
			ip link set docker0 up
			nft -f - <<-END
				table ip nat {
					chain postrouting {
						type nat hook postrouting priority 100;
						ip saddr 172.17.0.0/16 oifname != docker0 masquerade
					}
					chain prerouting {
						type nat hook prerouting priority -100;
						ip daddr %[2]s tcp dport 8002 dnat to 172.17.0.2:80
						ip daddr %[2]s tcp dport 8003 dnat to 172.17.0.3:80
					}
				}
				table ip filter {
					chain forward {
						type filter hook forward priority 0; policy drop;
						ct state invalid counter drop
						oifname docker0 ct state established,related accept
						iifname docker0 accept
						oifname docker0 ct status dnat accept
						ip daddr 10.244.0.0/16 accept
					}
				}
			END`, i, n.node(host).Addr))
		for number := 2; number <= 3; number++ {
			c := container{host: i, number: number, ns: kerneltest.Namespace(n.T, fmt.Sprintf("pod%d%d", i, number))}
			n.shell(host, fmt.Sprintf(`set -e
				ip link add veth%d type veth peer name eth0 netns %s
				ip link set veth%[1]d master docker0 up`, number, c.ns))
			kerneltest.Shell(n.T, c.ns, fmt.Sprintf(`ip link set lo up && ip link set eth0 up &&
				ip address add %s/16 dev eth0 && ip address add %s/24 dev eth0 && ip route add default via 172.17.0.1 &&
				ip route add 10.244.0.0/16 via 10.244.%d.1 src %[2]s && ip rule add from %[2]s table 7 && ip route add default via 10.244.%[3]d.1 table 7`,
				c.inside(), c.routed(), i))
			all = append(all, c)
		}
		n.routeIntoFabric(i)
		for _, c := range all[2*i:] { // as Docker's proxy does
			n.in(n.nsOf(host), func() error {
				l, err := net.Listen("tcp4", ":"+c.published())
				if err == nil {
					n.Cleanup(func() { l.Close() })
				}
				return err
			})
		}
	}
	return all
}

// routeIntoFabric has the switches above a host lead its containers' prefix to it. Those beside
// them have a default route up.
func (n *network) routeIntoFabric(i int) {
	n.Helper()
	to := n.node(podHosts[i]).Addr
	for _, s := range []string{fmt.Sprintf("e%d.0", i), fmt.Sprintf("a%d.2", i), fmt.Sprintf("a%d.3", i), "c1.1", "c1.2", "c2.1", "c2.2"} {
		n.shell(s, fmt.Sprintf(`via=$(ip route get %[1]s | head -1)
			case "$via" in
			*" via "*) ip route add 10.244.%[2]d.0/24 $(echo "$via" | grep -o 'via [0-9.]* dev [a-z0-9]*') onlink ;;
			*) ip route add 10.244.%[2]d.0/24 via %[1]s $(echo "$via" | grep -o 'dev [a-z0-9]*') onlink ;;
			esac`, to, i))
	}
}

// in runs f in a namespace.
func (n *network) in(ns string, f func() error) {
	n.Helper()
	if err := netns.InNamespace(ns, f); err != nil {
		n.Fatalf("%s: %v", ns, err)
	}
}

// nsOf is a host's namespace.
func (n *network) nsOf(host string) string { return "weft-" + n.lab.Config.Name + "-" + host }

// link connects two namespaces. The one that listens does so at address, the other dials to, from
// an address if that is not "".
func (n *network) link(ends [2]string, fromNS, from, toNS, address, to string) *pair {
	n.Helper()
	p := &pair{n: n, ends: ends}
	var l net.Listener
	n.in(toNS, func() (err error) {
		l, err = net.Listen("tcp4", address)
		return err
	})
	defer l.Close()
	if host, port, _ := net.SplitHostPort(to); port == "0" {
		to = net.JoinHostPort(host, fmt.Sprint(l.Addr().(*net.TCPAddr).Port))
	}
	d := &net.TCPAddr{}
	if from != "" {
		d.IP = net.ParseIP(from)
	}
	n.in(fromNS, func() (err error) {
		p.a, err = net.DialTCP("tcp4", d, net.TCPAddrFromAddrPort(netip.MustParseAddrPort(to)))
		return err
	})
	l.(*net.TCPListener).SetDeadline(time.Now().Add(kerneltest.Patience))
	var err error
	if p.b, err = l.Accept(); err != nil {
		n.Fatal(err)
	}
	n.Cleanup(func() { p.a.Close(); p.b.Close() })
	return p
}

// masqueraded connects a container to another by the port that its host publishes.
func (n *network) masqueraded(a, b container) *pair {
	n.Helper()
	return n.link([2]string{podHosts[a.host], podHosts[b.host]}, a.ns, "", b.ns, ":80", net.JoinHostPort(n.node(podHosts[b.host]).Addr.String(), b.published()))
}

// routed connects a container to another by addresses that the fabric routes.
func (n *network) routed(a, b container) *pair {
	n.Helper()
	return n.link([2]string{podHosts[a.host], podHosts[b.host]}, a.ns, a.routed(), b.ns, b.routed()+":0", b.routed()+":0")
}

// exchangeAll has all containers exchange so many bytes with containers of the other hosts at once.
func (n *network) exchangeAll(all []container, connect func(a, b container) *pair, bytes int) {
	n.Helper()
	var pairs []*pair
	for i, c := range all {
		pairs = append(pairs, connect(c, all[(i+2)%len(all)]))
	}
	done := make(chan struct{}, len(pairs))
	for _, p := range pairs {
		go func() {
			defer func() { done <- struct{}{} }()
			p.exchange(bytes)
		}()
	}
	for range pairs {
		<-done
	}
	for _, p := range pairs {
		p.a.Close()
		p.b.Close()
	}
	if n.Failed() {
		n.FailNow()
	}
}

// cores are the bytes that have come to each core switch.
func (n *network) cores() (list []float64) {
	n.Helper()
	for _, c := range []string{"c1.1", "c1.2", "c2.1", "c2.2"} {
		var bytes float64
		if _, err := fmt.Sscan(n.shell(c, `awk '/^ *p[0-9]/ { sub(/.*:/, ""); sum += $1 } END { printf "%.0f", sum }' /proc/net/dev`), &bytes); err != nil {
			n.Fatal(err)
		}
		list = append(list, bytes)
	}
	return list
}

// shares runs f and returns how much of what it sends each core switch got, in percent.
func (n *network) shares(f func()) (list []float64) {
	n.Helper()
	before := n.cores()
	f()
	sum := 0.0
	for i, bytes := range n.cores() {
		list = append(list, bytes-before[i])
		sum += list[i]
	}
	for i := range list {
		list[i] *= 100 / sum
	}
	return list
}

// invalid counts the packets that connection tracking of the hosts did not know what to do with.
func (n *network) invalid() (packets [4]int) {
	n.Helper()
	for i, h := range podHosts {
		_, text, _ := strings.Cut(n.shell(h, "nft list chain ip filter forward"), "invalid counter packets ")
		if _, err := fmt.Sscan(text, &packets[i]); err != nil {
			n.Fatal(err)
		}
	}
	return packets
}
