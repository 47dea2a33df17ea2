package interop

import (
	"encoding/base64"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"weft/internal/slowtest"
)

// A tunnel carries everything between inner addresses, IPv4 and IPv6, over a
// network that knows nothing of it.
func TestTunnel_programs(t *testing.T) {
	slowtest.System(t)
	n := newNetwork(t, "d")
	hosts := []string{hostA, hostB}
	key := n.file("key", []byte(base64.StdEncoding.EncodeToString([]byte(strings.Repeat("weft", 8)))))
	before := make(map[string]string)
	var daemons []*daemon
	for i, host := range hosts {
		n.shell(host, "sysctl -qw net.ipv6.conf.default.disable_ipv6=0")
		before[host] = n.configuration(host)
		peer := hosts[1-i]
		daemons = append(daemons, n.weft(host, fmt.Sprintf(`encapsulation: udp
tun:
  addresses: [10.9.0.%d/32, "fd00:9::%d/128"]
udp:
  name: %s
  peers:
    - name: %s
      prefixes: [10.9.0.%d/32, "fd00:9::%d/128"]
      endpoint: %s:5740
      key_file: %s
`, i+1, i+1, host, peer, 2-i, 2-i, n.addr(peer), key)))
	}
	for _, inner := range []struct{ name, addr string }{{"IPv4", "10.9.0.2"}, {"IPv6", "fd00:9::2"}} {
		n.Run(inner.name, func(t *testing.T) {
			n := &network{t, n.lab, n.dir}
			n.run("iperf3", []string{"iperf3"}, func(n *network) { n.iperf(hostA, hostB, inner.addr) })
			n.run("curl", []string{"curl", "nginx"}, func(n *network) { n.web(hostA, hostB, inner.addr, webFiles[:3]) })
			n.run("scp", []string{"scp", "sshd", "ssh-keygen"}, func(n *network) { n.secureCopy(hostA, hostB, inner.addr) })
			n.run("nc", []string{"nc"}, func(n *network) { n.datagrams(hostA, hostB, inner.addr) })
			n.run("ping", []string{"ping"}, func(n *network) {
				for _, size := range []string{"0", "1350", "1400", "1452", "1500", "4000"} {
					n.must(hostA, "ping", "-c", "1", "-w", "30", "-s", size, inner.addr)
				}
			})
		})
	}
	n.run("transfer", nil, func(n *network) {
		n.connect(hostA, hostB, "10.9.0.2").exchange(slowtest.Choose[int64](50e6, 1e9))
	})
	for _, d := range daemons {
		for _, field := range []string{"malformed", "unknown_peer", "forged", "replayed", "bad_checksum"} {
			if c := d.count("dataplane.tunnel." + field); c != 0 {
				t.Errorf("%s: %s is %d", d.node, field, c)
			}
		}
		d.end(syscall.SIGTERM)
		n.wantUnchanged(d.node, before[d.node])
	}
}
