package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"weft/internal/slowtest"
)

// vtysh changes the configuration of a switch.
func (l *bgpLab) vtysh(node string, lines ...string) {
	l.Helper()
	args := []string{"--vty_socket", filepath.Join("/run/weft", l.name+".frr", node), "-c", "configure terminal"}
	for _, line := range lines {
		args = append(args, "-c", line)
	}
	if out, err := exec.Command("ip", append([]string{"netns", "exec", "weft-" + l.name + "-" + node, "vtysh"}, args...)...).CombinedOutput(); err != nil {
		l.Fatalf("vtysh at %s: %v\n%s", node, err, out)
	}
}

// While a transfer runs, a rack is new, and a spine's IPv6 address goes and comes back. No
// packet to other racks goes plain.
func TestHost_growsUnderATransfer(t *testing.T) {
	slowtest.Unraced(t)
	l := newBGPLab(t, "leaf-spine:leaves=3,spines=2,hosts=1", "offload", "drb", map[string]string{"h1-1": "leaf1", "h2-1": "leaf2"})
	as := l.asOf("leaf3")
	l.waitFor("all racks are known", func() bool { return l.status("h1-1", "topology") == "bgp (3 racks, 2 bouncing switches)" })
	l.carryBoth("h1-1", "h2-1")
	time.Sleep(2 * time.Second)
	to := strings.TrimSpace(l.in("h2-1", "ip -4 -o addr show scope global | sed 's/.*inet6* //; s,/.*,,'"))
	var ends []func()
	server := exec.Command("ip", "netns", "exec", "weft-"+l.name+"-h2-1", "timeout", "120", "nc", "-l", "9000")
	start := func(c *exec.Cmd) {
		c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := c.Start(); err != nil {
			t.Skip(err)
		}
		end := sync.OnceFunc(func() {
			syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
			c.Wait()
		})
		t.Cleanup(end)
		ends = append(ends, end)
	}
	start(server)
	l.waitFor("nc listens", func() bool { return strings.Contains(l.in("h2-1", "ss -ltn"), ":9000") })
	// What leaves for the peer other than in an outer header is plain.
	plain := exec.Command("ip", "netns", "exec", "weft-"+l.name+"-h1-1", "tcpdump", "-n", "-l", "-i", "eth1", "tcp port 9000 and dst host "+to+" and ip[9] = 6")
	out := new(screen)
	plain.Stdout = out
	listens := l.listening(plain)
	start(plain)
	listens()
	client := exec.Command("ip", "netns", "exec", "weft-"+l.name+"-h1-1", "bash", "-c", "while head -c 10000 /dev/zero; do sleep 0.01; done | timeout 100 nc "+to+" 9000")
	start(client)
	time.Sleep(time.Second)
	if out.String() != "" {
		t.Skip("packets go plain before anything changes: probes are late on this machine")
	}
	carried := l.decapsulated()

	// A further network of leaf3's, as another rack is.
	said := len(l.says("h1-1"))
	l.in("leaf3", "ip route add blackhole 10.99.7.0/24")
	l.vtysh("leaf3", "router bgp "+as, "address-family ipv4 unicast", "network 10.99.7.0/24")
	l.waitFor("the rack is taken over", func() bool { return strings.Contains(l.says("h1-1")[said:], "the switches tell of another fabric") })

	six := strings.Fields(l.in("spine1", "ip -6 -o addr show dev lo scope global"))[3]
	l.in("spine1", "ip -6 addr del "+six+" dev lo")
	time.Sleep(4 * time.Second)
	if got := l.status("h1-1", "address6"); got == "" {
		t.Error("without one spine no IPv6 packet is carried")
	}
	l.in("spine1", "ip -6 addr add "+six+" dev lo")
	time.Sleep(4 * time.Second)

	after := l.decapsulated()
	for _, end := range ends {
		end()
	}
	for _, spine := range []string{"spine1", "spine2"} {
		if n := after[spine] - carried[spine]; n < 500 {
			t.Errorf("%s has taken %d packets out: nothing was shown", spine, n)
		}
	}
	if got := out.String(); got != "" {
		t.Errorf("went plain (%d lines):\n%.1000s\n...\n%s", strings.Count(got, "\n"), got, got[max(0, len(got)-1000):])
	}
	if said := l.says("h1-1")[said:]; strings.Contains(said, "go plain") {
		t.Errorf("h1-1 says\n%s", said)
	}
}
