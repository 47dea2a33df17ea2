package interop

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"weft/internal/slowtest"
	"weft/lab"
	"weft/topology"
)

// The hosts of the tests, in three pods: two with weft, one without.
const (
	hostA = "h0.0.2"
	hostB = "h1.0.2"
	plain = "h2.0.2"
)

// patience is how long anything may take; it decides no test that passes.
const patience = time.Minute

// network is a lab in which daemons and programs run.
type network struct {
	*testing.T
	lab *lab.Lab
	dir string // that anybody may read
}

// newNetwork builds a lab. Without a rate links are as fast as the machine.
func newNetwork(t *testing.T, letter string, change ...func(*lab.Config)) *network {
	t.Helper()
	if err := lab.CanBuild(); err != nil {
		t.Skipf("network namespaces: %v", err)
	}
	for _, tool := range []string{"go", "grep", "ip", "sysctl", "tc"} {
		needs(t, tool)
	}
	top, err := topology.Parse("fat-tree:k=4")
	if err != nil {
		t.Fatal(err)
	}
	config := lab.Config{Name: labName(letter), Topology: top, Unlimited: true}
	for _, f := range change {
		f(&config)
	}
	lab, err := lab.Hold(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := lab.Close(); err != nil {
			t.Error(err)
		}
	})
	dir, err := os.MkdirTemp("", "weft-gw-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return &network{t, lab, dir}
}

// needs skips a test whose program is missing.
func needs(t *testing.T, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skip(err)
		}
	}
}

// run runs a part of a test, if its programs are there.
func (n *network) run(name string, programs []string, f func(n *network)) {
	n.Run(name, func(t *testing.T) {
		needs(t, programs...)
		f(&network{t, n.lab, n.dir})
	})
}

func (n *network) node(name string) topology.Node {
	n.Helper()
	node, err := n.lab.Config.Topology.Lookup(name)
	if err != nil {
		n.Fatal(err)
	}
	return node
}

// addr is the address of a host.
func (n *network) addr(name string) string {
	n.Helper()
	return n.node(name).Addr.String()
}

// do runs f in a node's namespace, where it must succeed.
func (n *network) do(node string, f func() error) {
	n.Helper()
	if err := n.lab.Do(n.node(node).ID, f); err != nil {
		n.Fatalf("%s: %v", node, err)
	}
}

// process is a program that runs in a node.
type process struct {
	n      *network
	name   string
	cmd    *exec.Cmd
	stdout *syncBuffer
	stderr *syncBuffer
	exited chan struct{}
	err    error // once exited
}

// start runs a program in a node until the end of the test. Programs get the
// locale and the time of the tests' own.
func (n *network) start(node string, argv ...string) *process {
	n.Helper()
	return n.startCmd(node, exec.Command(argv[0], argv[1:]...))
}

func (n *network) startCmd(node string, cmd *exec.Cmd) *process {
	n.Helper()
	p := &process{n: n, name: node + ": " + strings.Join(cmd.Args, " "), cmd: cmd, exited: make(chan struct{})}
	p.stderr = &syncBuffer{}
	if cmd.Stdout == nil {
		p.stdout = &syncBuffer{}
		cmd.Stdout = p.stdout
	}
	cmd.Stderr = p.stderr
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "LC_") || strings.HasPrefix(s, "LANG") }), append(cmd.Env, "LC_ALL=C")...)
	// What a program starts must not outlive it; nor it the test.
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	n.do(node, cmd.Start)
	go func() {
		p.err = cmd.Wait()
		close(p.exited)
	}()
	n.Cleanup(func() {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-p.exited
	})
	return p
}

// self starts this test program in a node, as another one.
func (n *network) self(node, as string, args ...string) *process {
	n.Helper()
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Env = []string{role + "=" + as}
	return n.startCmd(node, cmd)
}

// wait waits for a program's end and returns what it has printed.
func (p *process) wait() (string, error) {
	p.n.Helper()
	ctx, cancel := context.WithTimeout(p.n.Context(), slowtest.Choose(patience, 10*patience))
	defer cancel()
	select {
	case <-p.exited:
	case <-ctx.Done():
		p.n.Fatalf("%s: does not end\n%s", p.name, p.messages())
	}
	return p.messages(), p.err
}

func (p *process) messages() string { return p.stdout.String() + p.stderr.String() }

// must is the output of a program that must succeed.
func (n *network) must(node string, argv ...string) string {
	n.Helper()
	out, err := n.start(node, argv...).wait()
	if err != nil {
		n.Fatalf("%s: %s: %v\n%s", node, strings.Join(argv, " "), err, out)
	}
	return out
}

func (n *network) shell(node, script string) string {
	n.Helper()
	return n.must(node, "sh", "-ec", script)
}

// eventually waits for what takes programs a moment.
func (n *network) eventually(what string, ok func() bool) {
	n.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			n.Fatalf("does not happen: %s", what)
		}
	}
}

// says waits for a program's message.
func (p *process) says(message string) {
	p.n.Helper()
	p.n.eventually(p.name+" says "+message, func() bool {
		select {
		case <-p.exited:
			if !strings.Contains(p.messages(), message) {
				p.n.Fatalf("%s: ended (%v) before it said %q\n%s", p.name, p.err, message, p.messages())
			}
		default:
		}
		return strings.Contains(p.messages(), message)
	})
}

// listens waits until somebody in a node listens at a TCP port.
func (n *network) listens(node, port string) {
	n.Helper()
	n.eventually("port "+port+" of "+node+" is listened at", func() bool {
		return strings.Contains(n.shell(node, "ss -Hltn"), ":"+port+" ")
	})
}

// configuration is all of a host that a daemon changes.
func (n *network) configuration(node string) string {
	n.Helper()
	// Not what they say on stderr: ip complains of others' namespaces that go away.
	return n.shell(node, `exec 2>/dev/null; ip rule; ip -6 rule; ip route show table all; ip -6 route show table all; ip -d link show p0
		ip link | grep -c mtu; grep -rs . /proc/sys/net/ipv4/conf || true; tc filter show dev p0 ingress; tc filter show dev p0 egress`)
}

// wantUnchanged compares with a configuration of before.
func (n *network) wantUnchanged(node, before string) {
	n.Helper()
	after := n.configuration(node)
	for _, pair := range [][2]string{{before, after}, {after, before}} {
		for line := range strings.SplitSeq(pair[0], "\n") {
			if !strings.Contains(pair[1], line) {
				n.Errorf("%s: only before or only after: %s", node, line)
			}
		}
	}
}

// file writes a file that anybody may read and returns its path.
func (n *network) file(name string, content []byte) string {
	n.Helper()
	path := filepath.Join(n.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		n.Fatal(err)
	}
	if err := os.WriteFile(path, bytes.Clone(content), 0o644); err != nil {
		n.Fatal(err)
	}
	return path
}
