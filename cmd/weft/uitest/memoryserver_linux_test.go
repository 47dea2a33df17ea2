package uitest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
)

// counted is weft ui with the Go runtime's account of its collections of garbage.
type counted struct {
	pid   int
	trace string // file
}

// serveCounted is serve, of which memory can be read.
func (b *bench) serveCounted() counted {
	b.t.Helper()
	trace, err := os.Create(filepath.Join(b.t.TempDir(), "gc"))
	if err != nil {
		b.t.Fatal(err)
	}
	defer trace.Close()
	cmd := exec.Command(b.weft, "lab", "ui", "--name", b.name, "--listen", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), "GODEBUG=gctrace=1")
	cmd.Stderr = trace
	b.url = b.awaitLine(b.startCommand(cmd), "http://")
	return counted{cmd.Process.Pid, trace.Name()}
}

var (
	resident = regexp.MustCompile(`(?m)^VmRSS:\s+(\d+) kB$`)
	left     = regexp.MustCompile(`(?m)^gc \d+ @.* \d+->\d+->(\d+) MB`)
)

// read reads what the server holds.
func (c counted) read(t *testing.T) (r reading) {
	t.Helper()
	r.rss = 1024 * last(t, fmt.Sprintf("/proc/%d/status", c.pid), resident)
	r.heap = 1e6 * last(t, c.trace, left)
	return r
}

// last returns the number of a file's last match.
func last(t *testing.T, file string, of *regexp.Regexp) float64 {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	all := of.FindAllSubmatch(text, -1)
	if len(all) == 0 {
		t.Fatalf("%s has no %v", file, of)
	}
	n, err := strconv.ParseFloat(string(all[len(all)-1][1]), 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// kept reads how many frames the server keeps.
func (b *bench) kept(r *reading) {
	b.t.Helper()
	var history struct{ Frames []struct{ Seq uint64 } }
	if err := json.Unmarshal(b.get("api/history"), &history); err != nil {
		b.t.Fatal(err)
	}
	r.frames = len(history.Frames)
}
