package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"weft/internal/daemon"
	"weft/internal/doctor"
	"weft/internal/exitcode"
	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
	"weft/internal/slowtest"
	"weft/internal/switchd"
	"weft/lab"
)

// doctorBed is a lab with a daemon on one host.
type doctorBed struct {
	*testing.T
	lab    *lab.Lab
	config string
	daemon *exec.Cmd
}

func newDoctorBed(t *testing.T) *doctorBed {
	if err := lab.CanBuild(); err != nil {
		t.Skipf("network namespaces: %v", err)
	}
	name := kerneltest.LabName("d")
	t.Cleanup(func() {
		if _, err := lab.Down(name); err != nil {
			t.Error(err)
		}
	})
	mustWeft(t, "lab", "up", "--name", name, "--rate", "200")
	l, err := lab.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	dir, err := os.MkdirTemp("", "weft-doctor-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	b := &doctorBed{T: t, lab: l, config: filepath.Join(dir, "host.yaml")}
	if err := errors.Join(os.Chmod(dir, 0o755), os.WriteFile(b.config, []byte("topology: fat-tree:k=4\nuser: root\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	b.start()
	t.Cleanup(b.end)
	return b
}

// start runs weft host on h0.0.2.
func (b *doctorBed) start() {
	b.Helper()
	b.daemon = program(b.T, "lab", "exec", "--name", b.lab.Config.Name, "h0.0.2", "--", "/proc/self/exe", "host", "--config", b.config)
	if err := b.daemon.Start(); err != nil {
		b.Fatal(err)
	}
}

func (b *doctorBed) end() {
	if b.daemon != nil {
		b.daemon.Process.Kill()
		b.daemon.Wait()
		b.daemon = nil
	}
}

// in runs a script on a node.
func (b *doctorBed) in(node, script string) {
	b.Helper()
	b.do(node, func() error {
		out, err := exec.Command("sh", "-c", script).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
		return err
	})
}

func (b *doctorBed) do(node string, f func() error) {
	b.Helper()
	n, err := b.lab.Lookup(node)
	if err == nil {
		err = b.lab.Do(n.ID, f)
	}
	if err != nil {
		b.Fatalf("%s: %v", node, err)
	}
}

// examine is what weft doctor finds at h0.0.2, or at all nodes.
func (b *doctorBed) examine(fabric bool) (all []doctor.Finding) {
	b.Helper()
	args := []string{"doctor", "--json", "--config", b.config}
	cmd := program(b.T, append([]string{"lab", "exec", "--name", b.lab.Config.Name, "h0.0.2", "--", "/proc/self/exe"}, args...)...)
	if fabric {
		cmd = program(b.T, append(args, "--fabric", "--name", b.lab.Config.Name)...)
	}
	text, err := cmd.Output()
	if json.Unmarshal(text, &all) != nil {
		b.Fatalf("doctor: %v\n%s", err, text)
	}
	if status := cmd.ProcessState.ExitCode(); (status == exitcode.Failed) != (doctor.Wrong(all) > 0) || status > exitcode.Failed {
		b.Errorf("exit status %d with %d findings", status, doctor.Wrong(all))
	}
	return all
}

// waitFirst waits until the first thing that is wrong is of a check at a node, with some words;
// "" for nothing.
func (b *doctorBed) waitFirst(fabric bool, node, check, words string) {
	b.Helper()
	var all []doctor.Finding
	for end := time.Now().Add(kerneltest.Patience); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		all = b.examine(fabric)
		if f := all[0]; f.OK && check == "" || !f.OK && f.Node == node && f.Check == check && strings.Contains(f.Cause, words) && f.Fix != "" {
			return
		}
	}
	b.Errorf("want %s: %s: %s first:\n%s", node, check, words, doctor.Text("doctor", all))
}

// Weft doctor names what is wrong first, in a lab with all kinds of faults, and nothing where
// nothing is.
func TestDoctor_faults(t *testing.T) {
	slowtest.Unraced(t) // doctor has no goroutine, and the daemon's tests race
	for _, tool := range []string{"nft", "tc", "ip"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(err)
		}
	}
	b := newDoctorBed(t)
	drop := "nft add table ip wrong && nft 'add chain ip wrong c { type filter hook %s priority 0; }' && nft add rule ip wrong c ip protocol 4 drop"
	b.waitFirst(true, "", "", "")
	b.waitFirst(false, "", "", "")
	for _, c := range []struct { // what only costs speed comes first, before paths have lost packets
		name, node, harm, heal string
		fabric                 bool
		check, words           string
	}{
		{"no selective acknowledgements", "h0.0.2", "sysctl -qw net.ipv4.tcp_sack=0", "sysctl -qw net.ipv4.tcp_sack=1", false, "tcp", "tcp_sack"},
		{"a firewall at an edge switch", "e0.0", fmt.Sprintf(drop, "forward"), "nft delete table ip wrong", true, "firewall", "IP-in-IP"},
		{"a firewall at the host", "h0.0.2", fmt.Sprintf(drop, "output"), "nft delete table ip wrong", false, "firewall", "IP-in-IP"},
		{"strict rp_filter", "a0.2", "sysctl -qw net.ipv4.conf.all.rp_filter=1", "sysctl -qw net.ipv4.conf.all.rp_filter=0", true, "rp_filter", "strict"},
		{"a smaller MTU", "a0.2", "ip link set p2 mtu 1400", "ip link set p2 mtu 1500", true, "mtu", "p2 is 1400"},
		{"a link at a tenth of its rate", "c1.1", "tc qdisc change dev p0 root handle 1: tbf rate 20mbit burst 3200 limit 75000",
			"tc qdisc change dev p0 root handle 1: tbf rate 200mbit burst 3200 limit 75000", true, "queue", "20 Mbit/s"},
		{"a route that is gone", "e1.0", "ip route del 10.4.1.1/32", "", true, "routes", "10.4.1.1/32"},
	} {
		node := c.node
		if !c.fabric {
			node = ""
		}
		if b.in(c.node, c.harm); !t.Run(c.name, func(t *testing.T) { b.of(t).waitFirst(c.fabric, node, c.check, c.words) }) {
			return
		}
		if c.heal != "" {
			b.in(c.node, c.heal)
		} else {
			mustWeft(t, "lab", "up", "--name", b.lab.Config.Name, "--rate", "200") // repairs
		}
	}
	t.Run("a bouncing switch that takes no outer header off", func(t *testing.T) {
		b := b.of(t)
		b.do("c2.1", func() error {
			h, err := netlink.NewHandle(kernel.Families...)
			if err != nil {
				return err
			}
			defer h.Close()
			links, err := kernel.Links(h, []string{"p0", "p1", "p2", "p3"})
			if err == nil {
				_, err = kernel.DecapFilter.DetachAll(h, links)
			}
			return err
		})
		b.in("c2.1", "ip link del weft-decap0 2>/dev/null || true")
		b.waitFirst(true, "c2.1", "decapsulation", "takes no outer header off")
		b.waitFirst(false, "", "bouncing", "c2.1 answers a ping")
	})
	mustWeft(t, "lab", "up", "--name", b.lab.Config.Name, "--rate", "200")
	b.waitFirst(false, "", "", "")

	t.Run("a stopped daemon", func(t *testing.T) {
		b := b.of(t)
		if err := b.daemon.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		b.waitFirst(false, "", "daemon", "is stopped")
		b.daemon.Process.Signal(syscall.SIGCONT)
	})
	b.end()
	b.waitFirst(false, "", "daemon", "crashed")
}

// of is the same bed for a subtest.
func (b *doctorBed) of(t *testing.T) *doctorBed {
	same := *b
	same.T = t
	return &same
}

// Doctor reads what an agent says of itself, too.
func TestDoctor_switch(t *testing.T) {
	agent := switchd.Status{Version: 1, Switch: "a0.2", Topology: "fat-tree:k=4", Signed: true, Process: os.Getpid(), Rejected: map[string]uint64{"sender": 88},
		Neighbours: []switchd.Neighbour{{Port: "p2", Name: "c1.1", State: "up", Why: "has never spoken: judged by its carrier"}}}
	out, err := weft(t, "doctor", "--socket", answering(t, agent))
	if exitcode.Of(err) != exitcode.Failed {
		t.Errorf("%v", err)
	}
	if !strings.HasPrefix(out, "switch a0.2: ") || !strings.Contains(out, "identity: c1.1 (port p2) calls itself by another name") {
		t.Error(out)
	}
}

// Where there is nothing to check, the exit status is 3; where the command line is wrong, 2.
func TestDoctor_exitStatus(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		args   []string
		status int
	}{
		{[]string{"doctor", "--fabric", "--name=nosuchlab"}, exitcode.Absent},
		{[]string{"doctor", "--ssh", "a"}, exitcode.Usage},
	} {
		_, err := weft(t, c.args...)
		if exitcode.Of(err) != c.status {
			t.Errorf("%v: %v, want status %d", c.args, err, c.status)
		}
	}
	if host, err := daemon.StatusSocket(); err == nil {
		if _, err := os.Stat(filepath.Dir(host)); err != nil { // no daemon has been here
			_, err := weft(t, "doctor", "--config", dir+"/no.yaml", "--switch-config", dir+"/no.yaml")
			if exitcode.Of(err) != exitcode.Absent {
				t.Errorf("nothing here: %v", err)
			}
		}
	}
}

// By ssh, the findings of all machines come with their names, and so does a machine that cannot
// be reached. No machine's name becomes an option of ssh.
func TestDoctor_ssh(t *testing.T) {
	dir := t.TempDir()
	script := "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\ncase $2 in\ngood) echo '[{\"check\":\"kernel\",\"ok\":true}]';;\n" +
		"bad) echo '[{\"check\":\"mtu\",\"ok\":false,\"cause\":\"c\",\"fix\":\"f\"}]'; exit 1;;\n*) echo no route to host >&2; exit 255;;\nesac\n"
	if err := os.WriteFile(filepath.Join(dir, "ssh"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	out, err := weft(t, "doctor", "--json", "--fabric", "--ssh", "good,bad,gone,-oProxyCommand=x")
	var all []doctor.Finding
	if err := json.Unmarshal([]byte(out), &all); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if exitcode.Of(err) != exitcode.Failed || doctor.Wrong(all) != 3 || len(all) != 4 {
		t.Errorf("%v: %s", err, out)
	}
	for node, words := range map[string]string{"bad": "c", "gone": "no route to host", "-oProxyCommand=x": "no machine's name"} {
		if !slices.ContainsFunc(all, func(f doctor.Finding) bool { return f.Node == node && !f.OK && strings.Contains(f.Cause, words) }) {
			t.Errorf("nothing of %s with %q: %s", node, words, out)
		}
	}
}

// By ssh, the most likely root comes first, whichever machine has it.
func TestDoctor_sshRootFirst(t *testing.T) {
	dir := t.TempDir()
	answer := func(node string, f *doctor.Facts) {
		text, err := json.Marshal(doctor.Examine(f))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, node), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	answer("host", &doctor.Facts{Role: doctor.RoleHost, Settings: map[string]string{"net.ipv4.tcp_sack": "0"}})
	answer("switch", &doctor.Facts{Role: doctor.RoleSwitch, Devices: []doctor.Device{{Name: "p0", Present: true, Up: true, Carrier: true}},
		Settings: map[string]string{"net.ipv4.conf.all.rp_filter": "1"}})
	script := "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\ncat " + dir + "/$2\nexit 1\n"
	if err := os.WriteFile(filepath.Join(dir, "ssh"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	out, _ := weft(t, "doctor", "--json", "--fabric", "--ssh", "host,switch")
	var all []doctor.Finding
	if err := json.Unmarshal([]byte(out), &all); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if len(all) < 2 || all[0].Node != "switch" || all[0].Check != "rp_filter" || all[1].Check != "tcp" || all[1].OK {
		t.Errorf("%s", out)
	}
}

// What a machine says is bounded, however much it says.
func TestBounded(t *testing.T) {
	b := bounded{most: 5}
	n, err := io.Copy(&b, strings.NewReader("1234567890"))
	if n != 10 || err != nil || b.buf.String() != "12345" {
		t.Errorf("%d, %v, %q", n, err, &b.buf)
	}
}

// weft host --check refuses a user and an uplink that this machine does not have.
func TestHostCheck_namesWhatIsNotThere(t *testing.T) {
	file := filepath.Join(t.TempDir(), "host.yaml")
	if err := os.WriteFile(file, []byte("user: nosuchuser\nuplink: weft-no-such0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	wantError(t, "host --check --config "+file, "nosuchuser", "weft-no-such0", "host.yaml:1", "host.yaml:2")
}
