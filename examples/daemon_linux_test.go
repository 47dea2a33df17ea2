package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"weft/internal/slowtest"
)

// The script, as a user would run it.
func TestDaemon_script(t *testing.T) {
	slowtest.System(t)
	for _, program := range []string{"curl", "nginx", "cmp"} {
		need(t, program)
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root: builds a lab of network namespaces")
	}
	bin := binaries(t)
	c := exec.Command("daemon/run.sh", "exdaemon")
	c.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, core := range []string{"10.4.1.1", "10.4.1.2", "10.4.2.1", "10.4.2.2"} {
		line := regexp.MustCompile(regexp.QuoteMeta(core) + `\n\S+\.packets +([0-9]+)\n`)
		m := line.FindSubmatch(out)
		if m == nil {
			t.Fatalf("nothing of %s:\n%s", core, out)
		}
		// 50 MB are 36,000 packets.
		if n, _ := strconv.Atoi(string(m[1])); n < 5000 {
			t.Errorf("%s: %d packets\n%s", core, n, out)
		}
	}
}

// messages collects what a process says. It is safe for concurrent use.
type messages struct {
	mu   sync.Mutex
	text []byte
}

// Write implements io.Writer.
func (m *messages) Write(b []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.text = append(m.text, b...)
	return len(b), nil
}

func (m *messages) String() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return string(m.text)
}

// waitFor waits until a process has said something.
func (m *messages) waitFor(t *testing.T, what string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !strings.Contains(m.String(), what); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waiting for %q:\n%s", what, m)
		}
	}
}

// A daemon and an embedded stack on one machine: both get through, and neither
// takes the other's programs away.
func TestDaemon_besideAnEmbeddedStack(t *testing.T) {
	slowtest.System(t)
	for _, program := range []string{"curl", "nsenter"} {
		need(t, program)
	}
	s := newSetting(t)
	config, err := filepath.Abs("daemon/host.yaml")
	if err != nil {
		t.Fatal(err)
	}
	daemon := func(node string) (*exec.Cmd, *messages) {
		c, m := s.command(t, node, "weft", "host", "--config", config), new(messages)
		c.Stderr = m
		return c, m
	}
	const server = "http://10.3.1.131:8080/file"
	s.start(t, "h3.1.3", "10.3.1.131:8080", "httpserver", "-address", "10.3.1.131", "-dir", s.dir, "-policy", "presto")

	t.Run("the daemon is there", func(t *testing.T) {
		d, said := daemon("h0.0.2")
		if err := d.Start(); err != nil {
			t.Fatal(err)
		}
		said.waitFor(t, "mode gateway")
		get := s.command(t, "h0.0.2", "httpget", "-address", "10.0.0.130", "-policy", "presto", server)
		report := new(messages)
		get.Stderr = report
		if err := get.Run(); err != nil {
			t.Errorf("%v: %s", err, report)
		}
		if !strings.Contains(report.String(), "no programs at p0: this network namespace is in use by weft, process ") || !strings.Contains(report.String(), "10.4.2.2") {
			t.Errorf("said %q", report)
		}
		s.fetch(t, "h0.0.2", "curl", "-sS", "--noproxy", "*", server)
		d.Process.Signal(syscall.SIGTERM)
		if err := d.Wait(); err != nil {
			t.Errorf("weft host: %v\n%s", err, said)
		}
	})
	t.Run("the stack is there", func(t *testing.T) {
		d, said := daemon("h3.1.3")
		if err := d.Run(); err == nil || !strings.Contains(said.String(), "is in use by weft, process ") {
			t.Errorf("weft host: %v\n%s", err, said)
		}
		s.fetch(t, "h0.0.2", "httpget", "-address", "10.0.0.130", "-policy", "presto", server)
	})
}
