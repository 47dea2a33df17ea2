package main

import (
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"weft/internal/slowtest"
)

// What is behind hosts goes over IPv6 by all spines alike, to containers and to hosts, and its
// order is restored.
func TestHost_carriesContainersOverIPv6(t *testing.T) {
	slowtest.Unraced(t)
	for _, c := range []struct{ mode, policy string }{{"auto", "drb"}, {"offload\nresequence: true\nreceivers_resequence: true", "presto"}} {
		t.Run(c.policy, func(t *testing.T) { containersOverIPv6(t, c.mode, c.policy) })
	}
}

func containersOverIPv6(t *testing.T, mode, policy string) {
	l := upBGPLab(t, "leaf-spine:leaves=2,spines=2,hosts=1")
	hosts := []string{"h1-1", "h2-1"}
	behind := "behind:\n"
	addr := make(map[string]string) // before the hosts have those of bridges, too
	for i, h := range hosts {
		addr[h] = l.addressOf("-6", h)
		behind += fmt.Sprintf("  - {host: %q, prefixes: [%q]}\n", addr[h], l.addPod6(i+1, h, addr[h]))
	}
	for i, h := range hosts {
		l.configure(h, fmt.Sprintf("mode: %s\ntopology: bgp\npolicy: %s\nbgp: {as: %d, neighbors: [%s=%s]}\nuser: root\n%s", mode, policy,
			4250000001+i, strings.Fields(l.in(h, "ip route show default"))[2], l.asOf(fmt.Sprintf("leaf%d", i+1)), behind))
	}
	l.carryBoth(hosts...)
	for _, c := range []struct{ from, to, addr string }{
		{"pod1", "pod2", "fd00:244:2::2"}, {"pod2", "pod1", "fd00:244:1::2"}, {"pod1", "h2-1", addr["h2-1"]}, {"h2-1", "pod1", "fd00:244:1::2"},
	} {
		by := l.sendTo("-6", c.from, c.to, c.addr)
		t.Logf("%s to %s: bounced at %v", c.from, c.to, by)
		if a, b := by["spine1"], by["spine2"]; min(a, b) < 400 || policy == "drb" && max(a, b) > min(a, b)*6/5 {
			t.Errorf("%s to %s: packets bounced at %v, want as many at both spines", c.from, c.to, by)
		}
	}
	for _, h := range hosts {
		if n, err := strconv.Atoi(l.status(h, "offload.forwarded")); err != nil || n < 2 {
			t.Errorf("%s: %d connections forwarded, %v", h, n, err)
		}
		t.Logf("%s: %s connections forwarded, too long %q, diverted %q, over budget %q", h, l.status(h, "offload.forwarded"), l.status(h, "offload.forwarded_long"),
			l.status(h, "order.diverted"), l.status(h, "order.over_budget"))
		if diverted := l.status(h, "order.diverted"); policy == "presto" && (diverted == "" || diverted == "0" || l.status(h, "order.over_budget") != "0") {
			t.Errorf("%s: diverted %q, over budget %q", h, diverted, l.status(h, "order.over_budget"))
		}
	}
}

// addPod6 puts a namespace behind a host with an address, and returns its prefix, which the switches
// lead to the host.
func (l *bgpLab) addPod6(i int, host, to string) (prefix string) {
	l.Helper()
	prefix = fmt.Sprintf("fd00:244:%d::/64", i)
	pod, ns := fmt.Sprintf("pod%d", i), fmt.Sprintf("weft-%s-pod%d", l.name, i)
	if out, err := exec.Command("ip", "netns", "add", ns).CombinedOutput(); err != nil {
		l.Fatalf("%v: %s", err, out)
	}
	l.Cleanup(func() { exec.Command("ip", "netns", "del", ns).Run() })
	l.in(host, fmt.Sprintf(`sysctl -qw net.ipv6.conf.all.forwarding=1 && ip link add veth0 type veth peer name eth0 netns %s && ip link set veth0 up &&
		ip -6 address add fd00:244:%d::1/64 dev veth0 nodad`, ns, i))
	l.in(pod, fmt.Sprintf("ip link set lo up && ip link set eth0 up && ip -6 address add fd00:244:%d::2/64 dev eth0 nodad && ip -6 route add default via fd00:244:%[1]d::1", i))
	for _, s := range []string{"leaf1", "leaf2", "spine1", "spine2"} {
		l.in(s, fmt.Sprintf(`route=$(ip -6 route get %[1]s | head -1)
			dev=$(echo "$route" | grep -o 'dev [^ ]*')
			case "$route" in
			*" via "*) ip -6 route add %[2]s $(echo "$route" | grep -o 'via [^ ]*') $dev onlink ;;
			*) ip -6 route add %[2]s via %[1]s $dev onlink ;;
			esac`, to, prefix))
	}
	return prefix
}
