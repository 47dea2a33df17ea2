package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"weft/internal/slowtest"
)

// In mode gateway under a policy of packets, files of nginx come by curl as they were over both
// families, by all spines alike. What sends them goes on while its daemon hangs, and each
// family goes plain by itself.
func TestHost_gatewayCarriesBothFamilies(t *testing.T) {
	slowtest.System(t)
	for _, program := range []string{"nginx", "curl", "nft"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	l := newBGPLab(t, "leaf-spine:leaves=2,spines=2,hosts=1", "gateway", "drb", map[string]string{"h1-1": "leaf1", "h2-1": "leaf2"})
	l.carryBoth("h1-1", "h2-1")
	l.web("h2-1")
	for _, host := range []string{"h1-1", "h2-1"} { // the lab's hosts do, and need not
		l.in(host, "sysctl -qw net.ipv6.conf.all.forwarding=0")
	}
	even := func(family string, by map[string]uint64) {
		t.Helper()
		a, b := by["spine1"], by["spine2"] // 5 MB are some 3,600 packets, besides acknowledgements
		if a+b < 3600 || max(a, b) > min(a, b)*6/5 {
			t.Errorf("%s: packets bounced at %v, want as many at both spines", family, by)
		}
	}
	for _, family := range []string{"-4", "-6"} {
		even(family, l.fetch(family, "h1-1", "h2-1"))
		even(family, l.sendBy(family, "h1-1", "h2-1"))
	}
	if n, err := strconv.Atoi(l.status("h2-1", "dataplane.egress6.encapsulated")); err != nil || n < 3600 {
		t.Errorf("the server's dataplane has encapsulated %d packets of IPv6: %v", n, err)
	}
	for _, family := range []string{"-4", "-6"} {
		pid, err := strconv.Atoi(l.status("h2-1", "process"))
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		stopped := make(chan error, 1)
		go func() { // until all has come
			time.Sleep(200 * time.Millisecond)
			err := syscall.Kill(pid, syscall.SIGSTOP)
			select {
			case <-ended:
			case <-time.After(20 * time.Second):
				err = errors.Join(err, errors.New("nothing came while the daemon hung"))
			}
			stopped <- errors.Join(err, syscall.Kill(pid, syscall.SIGCONT))
		}()
		l.fetch(family, "h1-1", "h2-1")
		close(ended)
		if err := <-stopped; err != nil {
			t.Errorf("%s: %v", family, err)
		}
	}
	// Nothing is longer than a header can say, whatever somebody tries (BIG TCP).
	for _, size := range []string{"65536", "65537"} {
		err := exec.Command("ip", "-n", "weft-"+l.name+"-h2-1", "link", "set", "weft0", "gso_max_size", size).Run()
		if refused := err != nil; refused != (size == "65537") {
			t.Errorf("the TUN's gso_max_size becomes %s: %v", size, err)
		}
	}
	// A firewall that drops IPv6 in IPv6 takes IPv6 alone off the carrier.
	l.in("leaf2", "nft 'table ip6 filter { chain forward { type filter hook forward priority 0; ip6 nexthdr 41 drop; }; }'")
	l.waitFor("IPv6 goes plain", func() bool { return l.status("h2-1", "racks.0.plain") == "true" })
	before := l.status("h2-1", "dataplane.egress6.encapsulated")
	by := l.fetch("-6", "h1-1", "h2-1") // whose acknowledgements, which go the other way, bounce
	if after := l.status("h2-1", "dataplane.egress6.encapsulated"); after != before {
		t.Errorf("behind a firewall packets are encapsulated: %s, before %s; bounced at %v", after, before, by)
	}
	even("-4", l.fetch("-4", "h1-1", "h2-1"))
	for _, host := range []string{"h1-1", "h2-1"} {
		if says := l.says(host); strings.Contains(says, "repaired:") || strings.Contains(says, "nobody restores") {
			t.Errorf("%s says\n%s", host, says)
		}
	}
}

// Both families of a gateway quit a link that fails, take smaller MTUs on the way, and go on
// when a reload changes between policies of the dataplane and of the program.
func TestHost_gatewayOfBothFamiliesChanges(t *testing.T) {
	slowtest.Unraced(t)
	for _, program := range []string{"nginx", "curl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	l := newBGPLab(t, "leaf-spine:leaves=2,spines=2,hosts=1", "gateway", "letflow", map[string]string{"h1-1": "leaf1", "h2-1": "leaf2"})
	l.carryBoth("h1-1", "h2-1")
	l.web("h2-1")
	families := []string{"-4", "-6"}
	config := filepath.Join(l.dir, "h2-1.yaml")
	was, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(l.status("h2-1", "process"))
	if err != nil {
		t.Fatal(err)
	}
	for _, policy := range []string{"presto", "drb", "luopan", "conga", "reps", "drb"} {
		for _, family := range families {
			ended := make(chan map[string]uint64, 1)
			go func() {
				defer close(ended) // if it fails, too
				ended <- l.fetch(family, "h1-1", "h2-1")
			}()
			time.Sleep(200 * time.Millisecond)
			if err := os.WriteFile(config, []byte(strings.Replace(string(was), "letflow", policy, 1)), 0o644); err != nil {
				t.Fatal(err)
			}
			if err := syscall.Kill(pid, syscall.SIGHUP); err != nil {
				t.Fatal(err)
			}
			l.waitFor(policy, func() bool { return l.status("h2-1", "policy") == policy })
			<-ended
		}
	}
	mustWeft(t, "lab", "fail", "--name", l.name, "spine1-leaf1")
	for _, family := range families {
		l.waitFor(family+" quits the link", func() bool { return l.fetch(family, "h1-1", "h2-1")["spine1"] < 100 })
	}
	mustWeft(t, "lab", "heal", "--name", l.name)
	for _, family := range families {
		l.waitFor(family+" takes it back", func() bool { return l.fetch(family, "h1-1", "h2-1")["spine1"] > 1000 })
	}
	for _, spine := range []string{"spine1", "spine2"} {
		l.in(spine, "for d in /sys/class/net/*; do d=${d##*/}; [ $d = lo ] || ip link set $d mtu 1400; done")
	}
	for _, family := range families { // plain ones hear of the MTU from the switches
		l.fetch(family, "h1-1", "h2-1")
	}
	for at, mtu := range map[string]string{"0": "1380", "1": "1360"} {
		l.waitFor("packets are of "+mtu+" bytes", func() bool { return l.status("h2-1", "racks."+at+".mtu") == mtu })
	}
	for _, family := range families {
		if by := l.fetch(family, "h1-1", "h2-1"); min(by["spine1"], by["spine2"]) < 1000 {
			t.Errorf("%s: of packets that are small enough %v bounced", family, by)
		}
	}
}

// A router that does not answer over IPv6 keeps IPv6 alone from the carrier.
func TestHost_goesOnWithoutARouterOfIPv6(t *testing.T) {
	slowtest.Unraced(t)
	l := upBGPLab(t, "leaf-spine:leaves=2,spines=2,hosts=1")
	const host, leaf = "h1-1", "leaf1"
	route, route6 := strings.Fields(l.in(host, "ip route show default")), strings.Fields(l.in(host, "ip -6 route show default"))
	l.in(host, "ip -6 route replace default via fe80::dead dev "+route6[4])
	l.configure(host, fmt.Sprintf("mode: gateway\ntopology: bgp\nbgp: {as: 4250000001, neighbors: [%s=%s]}\nuser: root\n", route[2], l.asOf(leaf)))
	l.waitFor("IPv6 is given up", func() bool { return strings.Contains(l.says(host), "IPv6 packets go plain: ") })
	l.waitFor("IPv4 is at work", func() bool { return l.status(host, "state") == "working" })
	if got := l.status(host, "address6"); got != "" {
		t.Errorf("IPv6 is carried from %s", got)
	}
}

// web has nginx serve 5 MB to both families at a host.
func (l *bgpLab) web(host string) {
	l.Helper()
	const config = `daemon off; master_process off; pid %[1]s/nginx.pid; error_log stderr;
events {}
http { access_log off; sendfile on;
client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/fastcgi; uwsgi_temp_path %[1]s/uwsgi; scgi_temp_path %[1]s/scgi;
server { listen 8080; listen [::]:8080; root %[1]s; } }
`
	file := filepath.Join(l.dir, "nginx.conf")
	if err := os.WriteFile(file, fmt.Appendf(nil, config, l.dir), 0o644); err != nil {
		l.Fatal(err)
	}
	l.in(host, "head -c 5000000 /dev/urandom > "+filepath.Join(l.dir, "file"))
	c := exec.Command("ip", "netns", "exec", "weft-"+l.name+"-"+host, "nginx", "-p", l.dir, "-e", "stderr", "-c", file)
	if err := c.Start(); err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() {
		c.Process.Signal(syscall.SIGTERM)
		c.Wait()
	})
	l.waitFor("nginx listens", func() bool { return strings.Count(l.in(host, "ss -ltn"), ":8080") == 2 })
}

// fetch has curl get that file over one family, and compares hashes. It
// returns how many packets bounced at each switch.
func (l *bgpLab) fetch(family, from, to string) map[string]uint64 {
	l.Helper()
	before := l.decapsulated()
	addr := l.addressOf(family, to)
	if family == "-6" {
		addr = "[" + addr + "]"
	}
	got := l.in(from, "curl -gsS --fail --max-time 50 http://"+addr+":8080/file | sha256sum")
	if want := l.in(to, "sha256sum < "+filepath.Join(l.dir, "file")); got != want {
		l.Fatalf("%s: the hash is %s, want %s", family, got, want)
	}
	after := l.decapsulated()
	for n := range after {
		after[n] -= before[n]
	}
	return after
}

// A tunnel between IPv6 addresses carries both families, to an end that listens on IPv6 alone.
func TestHost_tunnelsOverIPv6(t *testing.T) {
	slowtest.Unraced(t)
	l := upBGPLab(t, "leaf-spine:leaves=2,spines=2,hosts=1")
	hosts := []string{"h1-1", "h2-1"}
	var ends []string
	for _, host := range hosts {
		ends = append(ends, l.addressOf("-6", host))
	}
	for i, host := range hosts {
		l.configure(host, fmt.Sprintf(`encapsulation: udp
user: root
tun: {addresses: [10.9.0.%[1]d/32, "fd00:9::%[1]d/128"]}
udp:
  name: %[2]s
  listen: "[%[3]s]:5740"
  peers: [{name: %[4]s, prefixes: [10.9.0.%[5]d/32, "fd00:9::%[5]d/128"], endpoint: "[%[6]s]:5740"}]
`, i+1, host, ends[i], hosts[1-i], 2-i, ends[1-i]))
	}
	for _, host := range hosts {
		l.waitFor(host+" is at work", func() bool { return l.status(host, "state") == "working" })
	}
	l.sendTo("-4", "h1-1", "h2-1", "10.9.0.2")
	l.sendTo("-6", "h1-1", "h2-1", "fd00:9::2")
	l.in("h1-1", "ping -c 1 -W 5 -s 4000 10.9.0.2 && ping -c 1 -W 5 -s 4000 fd00:9::2")
	for _, field := range []string{"malformed", "unknown_peer", "forged", "replayed", "bad_checksum"} {
		if n := l.status("h2-1", "dataplane.tunnel."+field); n != "0" {
			t.Errorf("%s: %s", field, n)
		}
	}
}
