package uitest

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// bench is a lab with transfers, and weft ui that shows it.
type bench struct {
	t    *testing.T
	weft string // the program
	name string // of the lab
	url  string // of the page, with the key
}

// need skips what cannot run here: a lab, and a browser.
func need(t *testing.T) {
	t.Helper()
	needBrowser(t, "iperf3")
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
}

// needBrowser skips what lacks a browser, or a program.
func needBrowser(t *testing.T, programs ...string) {
	t.Helper()
	if v := os.Getenv("WEFT_TESTS"); v != "all" && v != "long" {
		t.Skip("a slow test of a whole system: WEFT_TESTS=all runs it")
	}
	for _, program := range append(programs, "chromium") {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("needs %s: %v", program, err)
		}
	}
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, weft: os.Getenv("WEFT_BINARY"), name: fmt.Sprintf("t%du", os.Getpid())}
	if b.weft == "" {
		b.weft = build(t, "./cmd/weft")
	}
	t.Cleanup(func() { b.run("lab", "down", "--name", b.name) })
	b.run("lab", "up", "--name", b.name, "--topology", "fat-tree:k=4", "--rate", "8")
	return b
}

// build builds a program of weft's module.
func build(t *testing.T, dir string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), filepath.Base(dir))
	build := exec.Command("go", "build", "-o", program, dir)
	build.Dir = "../../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// run runs weft to its end.
func (b *bench) run(args ...string) string {
	b.t.Helper()
	out, err := exec.Command(b.weft, args...).CombinedOutput()
	if err != nil {
		b.t.Errorf("weft %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// start runs weft until the test ends, with all that it starts. It returns its output.
func (b *bench) start(args ...string) io.Reader {
	b.t.Helper()
	return b.startCommand(exec.Command(b.weft, args...))
}

// startCommand runs a command until the test ends, with all that it starts. It returns its output.
func (b *bench) startCommand(cmd *exec.Cmd) io.Reader {
	b.t.Helper()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
		cmd.Wait()
	})
	return out
}

// on runs a program on a node until the test ends.
func (b *bench) on(node string, argv ...string) io.Reader {
	b.t.Helper()
	return b.start(append([]string{"lab", "exec", "--name", b.name, node, "--"}, argv...)...)
}

// awaitLine reads what a program prints up to a line with a text, and forgets what comes after.
func (b *bench) awaitLine(out io.Reader, text string) string {
	b.t.Helper()
	lines, all := bufio.NewScanner(out), ""
	for lines.Scan() {
		all += lines.Text() + "\n"
		if strings.Contains(lines.Text(), text) {
			go io.Copy(io.Discard, out)
			return lines.Text()
		}
	}
	b.t.Fatalf("it ended without a line with %q:\n%s", text, all)
	return ""
}

// transfer has two hosts with weft, and a connection of iperf3 between them.
func (b *bench) transfer(flags ...string) {
	b.t.Helper()
	dir, err := os.MkdirTemp("", "weft-uitest") // TempDir's are for root alone, and weft host becomes another user
	if err == nil {
		b.t.Cleanup(func() { os.RemoveAll(dir) })
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	config := filepath.Join(dir, "host.yaml")
	if err := os.WriteFile(config, []byte("topology: fat-tree:k=4\n"), 0o644); err != nil {
		b.t.Fatal(err)
	}
	for _, host := range []string{"h0.0.2", "h3.1.3"} {
		out := b.on(host, "sh", "-c", b.weft+" host --config "+config+" 2>&1")
		b.awaitLine(out, "mode offload")
	}
	b.awaitLine(b.on("h3.1.3", "iperf3", "-s", "--forceflush"), "listening")
	b.awaitLine(b.on("h0.0.2", append([]string{"iperf3", "-c", "10.3.1.3", "--forceflush"}, flags...)...), "connected to")
}

// serve starts weft ui.
func (b *bench) serve() {
	b.t.Helper()
	b.url = b.awaitLine(b.start("lab", "ui", "--name", b.name, "--listen", "127.0.0.1:0"), "http://")
}

// get asks the page's server.
func (b *bench) get(path string) []byte {
	b.t.Helper()
	base, _, _ := strings.Cut(b.url, "#")
	a, err := http.Get(base + path)
	if err != nil {
		b.t.Fatal(err)
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil || a.StatusCode != http.StatusOK {
		b.t.Fatalf("%s: %s, %v: %s", path, a.Status, err, text)
	}
	return text
}
