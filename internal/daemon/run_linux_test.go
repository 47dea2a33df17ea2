package daemon

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"weft/internal/kernel/kerneltest"
	"weft/internal/slowtest"
)

// procStatus returns the fields of /proc/PID/status of every thread, which must
// agree.
func (c *child) procStatus(names ...string) map[string]string {
	c.n.Helper()
	dir := fmt.Sprintf("/proc/%d/task", c.cmd.Process.Pid)
	threads, err := os.ReadDir(dir)
	if err != nil || len(threads) < 2 {
		c.n.Fatalf("%d threads, want several (%v)", len(threads), err)
	}
	fields := make(map[string]string)
	for _, thread := range threads {
		b, err := os.ReadFile(dir + "/" + thread.Name() + "/status")
		if err != nil {
			continue // it has ended
		}
		for _, line := range strings.Split(string(b), "\n") {
			name, value, _ := strings.Cut(line, ":")
			value = strings.Join(strings.Fields(value), " ")
			for _, want := range names {
				if name != want {
					continue
				}
				if had, ok := fields[name]; ok && had != value {
					c.n.Errorf("threads differ in %s: %s and %s", name, had, value)
				}
				fields[name] = value
			}
		}
	}
	return fields
}

func TestRun_dropsPrivilegesOfAllThreads(t *testing.T) {
	slowtest.System(t)
	n := sharedNetwork(t)
	for _, user := range []struct{ name, uids, groups string }{{"nobody", "65534 65534 65534 65534", ""}, {"root", "0 0 0 0", ""}} {
		c := n.start("h0.0.2", "mode: offload\npolicy: ecmp\nuser: "+user.name+"\n")
		const three = "0000008000003000" // CAP_BPF, CAP_NET_RAW, CAP_NET_ADMIN
		want := map[string]string{"Uid": user.uids, "CapPrm": three, "CapEff": three, "CapBnd": three, "CapAmb": three, "NoNewPrivs": "1"}
		names := []string{"Groups"}
		for name := range want {
			names = append(names, name)
		}
		got := c.procStatus(names...)
		for name, v := range want {
			if got[name] != v {
				t.Errorf("user %s: %s is %s, want %s", user.name, name, got[name], v)
			}
		}
		if user.name == "nobody" && got["Groups"] != "" {
			t.Errorf("user %s: groups %s, want none", user.name, got["Groups"])
		}
		c.end(syscall.SIGTERM)
	}
}

// coreCounts are the packets by core switch that a status tells.
func coreCounts(status map[string]string) (cores []int) {
	for i := range 6 {
		bounce := fmt.Sprintf("offload.bounces.%d.", i)
		if strings.HasPrefix(status[bounce+"address"], "10.4.") {
			packets, _ := strconv.Atoi(status[bounce+"packets"])
			cores = append(cores, packets)
		}
	}
	return cores
}

// The kernel's own connection, sprayed by packets.
func TestRun_offload(t *testing.T) {
	slowtest.System(t)
	n := sharedNetwork(t)
	before := n.configuration("h0.0.2")
	connection := n.connect("h0.0.2", "h3.1.3")
	connection.exchange(100_000)
	c := n.start("h0.0.2", "mode: offload\npolicy: drb\n")
	late := kerneltest.Macvlan(t) == nil
	if now := n.shell("h0.0.2", "ip -d link show"); !strings.Contains(now, "gso_max_segs 1 ") || strings.Contains(now, "weftcut") != late {
		t.Errorf("the kernel's super-segments are not cut: %s", now)
	}
	connection.exchange(1_000_000) // an old connection
	s := c.status()
	if s["mode"] != "offload" || s["address"] != "10.0.0.2" || s["uplink"] != "p0" || s["gateway"] != "10.0.0.1" || s["mtu"] != "1500" || s["late_cut.active"] != strconv.FormatBool(late) || (s["late_cut.why"] == "") != late {
		t.Errorf("status: %v", s)
	}
	// A new one: until its route is looked up again, the old one may send
	// super-segments.
	had := coreCounts(s)
	n.connect("h0.0.2", "h3.1.3").exchange(3_000_000)
	cores, sum := coreCounts(c.status()), 0
	for i := range cores {
		cores[i] -= had[i]
		sum += cores[i]
	}
	if len(cores) != 4 || sum < 2000 {
		t.Fatalf("packets by core: %v", cores)
	}
	for _, packets := range cores {
		if packets < sum*24/100 || packets > sum*26/100 {
			t.Errorf("packets by core: %v, want a quarter each", cores)
		}
	}

	// A configuration that is wrong, or that would need a restart, changes nothing.
	c.write("mode: offload\npolicy: drbb\n")
	c.cmd.Process.Signal(syscall.SIGHUP)
	c.waitFor(`reload refused, all stays as it is: ` + c.file + `:2: policy: "drbb" is unknown`)
	c.write("mode: gateway\n")
	c.cmd.Process.Signal(syscall.SIGHUP)
	c.waitFor("mode: cannot change while the daemon runs")
	c.write("mode: offload\npolicy: local\n")
	c.cmd.Process.Signal(syscall.SIGHUP)
	c.waitFor("policy: local is decided packet by packet in weft")
	if s := c.status(); s["reloads"] != "0" || s["policy"] != "drb" {
		t.Errorf("status: %v", s)
	}
	connection.exchange(100_000)
	// One that is right.
	c.write("mode: offload\npolicy: ecmp\n")
	c.cmd.Process.Signal(syscall.SIGHUP)
	c.waitFor("reloaded: mode offload, 10.0.0.2 in fat-tree:k=4 by p0, policy ecmp")
	if now := n.shell("h0.0.2", "ip -d link show"); strings.Contains(now, "gso_max_segs 1 ") || strings.Contains(now, "weftcut") {
		t.Errorf("policy ecmp, and the kernel's super-segments are cut: %s", now)
	}
	connection.exchange(1_000_000)
	c.end(syscall.SIGTERM)
	connection.exchange(100_000)
	n.wantUnchanged("h0.0.2", before)
}

// dataplanes are what TestRun_gateway runs with.
var dataplanes = []struct{ name, env, policy string }{
	{"relay", childRelay + "=1", "presto"},
	{"gateway by flowcells", childRelay + "=", "presto"},
	{"gateway by packets", childRelay + "=", "drb"},
}

// The kernels' connections pass through two daemons, of which one is killed and
// comes back, and outlive both.
func TestRun_gateway(t *testing.T) {
	slowtest.System(t)
	for _, d := range dataplanes {
		t.Run(d.name, func(t *testing.T) {
			n := sharedNetwork(t)
			before := n.configuration("h0.0.2")
			old := n.connect("h0.0.2", "h3.1.3")
			old.exchange(100_000)
			a := n.start("h0.0.2", "policy: "+d.policy+"\n", d.env)
			b := n.start("h3.1.3", "policy: "+d.policy+"\n", d.env)
			old.exchange(1_000_000)
			fresh := n.connect("h0.0.2", "h3.1.3")
			fresh.exchange(3_000_000)
			inRack := n.connect("h0.0.2", "h0.0.3")
			inRack.exchange(100_000)
			n.shell("h0.0.2", "ping -c 2 -i 0.1 -W 5 -M do -s 1452 10.3.1.3") // 1480 bytes: what fits with an outer header
			for _, c := range []*child{a, b} {
				s := c.status()
				if taken, _ := strconv.Atoi(s["steer.taken"]); taken < 1000 {
					t.Errorf("%s: %d packets taken from the kernel, status %v", c.node, taken, s)
				}
				if s["offload.too_long"] != "0" || s["offload.no_path"] != "0" || s["offload.malformed"] != "0" {
					t.Errorf("%s: status %v", c.node, s)
				}
				if s["devices.tun.offloads"] == "" || s["devices.uplink.offloads"] == "" {
					t.Errorf("%s: status %v", c.node, s)
				}
			}
			// Killed, its host goes on by the kernel; a restart repairs.
			a.end(syscall.SIGKILL)
			old.exchange(100_000)
			n.connect("h0.0.2", "h3.1.3").exchange(100_000)
			a = n.start("h0.0.2", "policy: flowcell-drb\n", d.env)
			old.exchange(1_000_000)
			fresh.exchange(1_000_000)
			a.end(syscall.SIGTERM)
			fresh.exchange(100_000)
			n.wantUnchanged("h0.0.2", before)
			b.end(syscall.SIGTERM)
			fresh.exchange(100_000)
		})
	}
}

// A connection that is busy while its daemons come and go.
func TestRun_startAndStopUnderLoad(t *testing.T) {
	slowtest.System(t)
	n := sharedNetwork(t)
	connection := n.connect("h0.0.2", "h3.1.3")
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				connection.exchange(300_000)
			}
		}
	}()
	for range 2 {
		a := n.start("h0.0.2", "policy: presto\n", dataplanes[1].env)
		b := n.start("h3.1.3", "policy: presto\n", dataplanes[1].env)
		time.Sleep(300 * time.Millisecond)
		a.write("policy: flowcell-drb\n")
		a.cmd.Process.Signal(syscall.SIGHUP)
		a.waitFor("reloaded: mode gateway, 10.0.0.2 in fat-tree:k=4 by p0, policy flowcell-drb")
		a.end(syscall.SIGTERM)
		time.Sleep(100 * time.Millisecond)
		b.end(syscall.SIGTERM)
	}
	close(stop)
	<-done
}

func TestRun_cleanupAfterAKill(t *testing.T) {
	slowtest.System(t)
	n := sharedNetwork(t)
	before := n.configuration("h0.0.2")
	a := n.start("h0.0.2", "policy: presto\n", dataplanes[1].env)
	n.do("h0.0.2", func() error {
		if _, err := Cleanup(); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("process %d", a.cmd.Process.Pid)) {
			t.Errorf("clean-up of a daemon that runs: %v", err)
		}
		return nil
	})
	a.end(syscall.SIGKILL)
	for _, want := range []string{"3 programs, 2 rules", ""} {
		n.do("h0.0.2", func() error {
			removed, err := Cleanup()
			if got := strings.Join(removed, ", "); !strings.HasPrefix(got, want) || want == "" && got != "" {
				t.Errorf("removed %q, want %q", got, want)
			}
			return err
		})
	}
	n.wantUnchanged("h0.0.2", before)
}

// A start that fails leaves nothing.
func TestRun_failureLeavesNothing(t *testing.T) {
	slowtest.System(t)
	n := sharedNetwork(t)
	before := n.configuration("h0.0.2")
	for config, want := range map[string]string{
		"policy: local\nmode: offload":                         "local",
		"uplink: nosuch0":                                      "nosuch0",
		"topology: fat-tree:k=2\naddress: 10.0.0.2\nmtu: 9000": "more than the 1500 of p0",
		"status: /proc/nowhere.sock":                           "status",
		"user: no-such-user":                                   `user "no-such-user"`,
	} {
		out := n.fail("h0.0.2", config)
		if !strings.Contains(out, want) {
			t.Errorf("%q: says %q, want %q", config, out, want)
		}
	}
	n.wantUnchanged("h0.0.2", before)
}
