package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"weft/internal/live"
	"weft/internal/slowtest"
)

func TestTop_bad(t *testing.T) {
	wantError(t, "top --lab --socket x", "--socket", "--lab")
	wantError(t, "top --name x", "--lab")
	wantError(t, "top --interval 1ms", "--interval 1ms")
	wantError(t, "top --socket /nonexistent/weft.sock", "/nonexistent/weft.sock")
	wantError(t, "top --lab --name nosuchlab", "nosuchlab")
}

// pane is a terminal of tmux's.
type pane struct {
	t      *testing.T
	server string
}

func (p pane) tmux(args ...string) string {
	p.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-L", p.server}, args...)...).CombinedOutput()
	if err != nil {
		p.t.Fatalf("tmux %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func (p pane) keys(keys ...string) { p.tmux(append([]string{"send-keys", "-t", "top"}, keys...)...) }

// shows waits until the pane shows something, and returns all that it shows then.
func (p pane) shows(what string, is func(text string) bool) (text string) {
	p.t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if text = p.tmux("capture-pane", "-p", "-t", "top"); is(text) {
			return text
		}
	}
	p.t.Fatalf("%s is not shown:\n%s", what, text)
	return ""
}

func (p pane) has(words ...string) string {
	p.t.Helper()
	return p.shows(strings.Join(words, ", "), func(text string) bool {
		for _, w := range words {
			if !strings.Contains(text, w) {
				return false
			}
		}
		return true
	})
}

// In a real terminal: what is shown is what the frame has, and keys and sizes do what they are for.
func TestTop_inTmux(t *testing.T) {
	slowtest.System(t)
	if os.Geteuid() != 0 {
		t.Skip("needs root: builds a lab of network namespaces")
	}
	for _, name := range []string{"tmux", "ping"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("needs %s: %v", name, err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	lab := demoLab("t")
	mustWeft(t, "lab", "up", "--name", lab, "--topology", "leaf-spine:leaves=2,spines=2,hosts=2", "--rate", "20")
	t.Cleanup(func() { mustWeft(t, "lab", "down", "--name", lab); wantNoNamespaces(t, lab) })
	ping := program(t, "lab", "exec", "--name", lab, "h0.0.2", "--", "ping", "-q", "-i", "0.005", "-s", "1400", "10.0.1.2")
	if err := ping.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ping.Process.Kill(); ping.Wait() })
	dir := t.TempDir()
	p := pane{t, fmt.Sprintf("weft-top-%d", os.Getpid())}
	p.tmux("-f", "/dev/null", "new-session", "-d", "-s", "top", "-x", "80", "-y", "24", "-c", dir,
		"env "+asProgram+"=1 NO_COLOR=1 "+self+" top --lab --name "+lab+" --interval 250ms 2>errors; sleep 60")
	t.Cleanup(func() { exec.Command("tmux", "-L", p.server, "kill-server").Run() })

	artifact := func(name, text string) {
		if to := os.Getenv("WEFT_ARTIFACTS"); to != "" {
			os.WriteFile(filepath.Join(to, name), []byte(text), 0o644)
		}
	}
	first := p.shows("a link that carries something", func(text string) bool { return regexp.MustCompile(`delivered \d+\.\d+ [kM]`).MatchString(text) })
	artifact("top-80x24.txt", first)
	p.keys("Space")
	p.has("PAUSED")
	p.keys("w")
	name := regexp.MustCompile(`weft-top-\S+\.json`).FindString(p.has("written to weft-top-"))
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	var picture pictureJSON
	if err := json.Unmarshal(text, &picture); err != nil {
		t.Fatal(err)
	}
	shown := p.has("PAUSED", fmt.Sprintf("frame %d", picture.Frame.Seq))
	links := 0
	for line := range strings.Lines(shown) {
		for i, l := range picture.Fabric.Links {
			if !regexp.MustCompile(`[ >!]`+regexp.QuoteMeta(l.Name)+` `).MatchString(line) || strings.Contains(line, ":") {
				continue
			}
			links++
			f := picture.Frame.Links[i]
			figures := regexp.MustCompile(`[#.]{5} +(\S+)( [kMG])?`).FindAllStringSubmatch(line, -1)
			if len(figures) != 2 || !strings.Contains(line, f.State.String()) {
				t.Errorf("%s, of which the frame has %+v: %q", l.Name, f, line)
				continue
			}
			for n, flow := range []live.Flow{f.Up, f.Down} {
				if got := figures[n][1] + figures[n][2]; got != threeDigits(flow.Rate) {
					t.Errorf("%s: %s is shown, the frame has %g", l.Name, got, flow.Rate)
				}
			}
		}
	}
	if links != len(picture.Fabric.Links) {
		t.Errorf("%d of %d links are shown:\n%s", links, len(picture.Fabric.Links), shown)
	}
	p.keys("Left")
	p.has("PAUSED", fmt.Sprintf("frame %d", picture.Frame.Seq-1))
	p.keys("2")
	artifact("top-nodes.txt", p.has("[2: nodes]", "2 of 2"))
	p.keys("s")
	p.has("sorted by node")
	p.keys("End")
	p.has("live")
	mustWeft(t, "lab", "fail", "--name", lab, picture.Fabric.Links[len(picture.Fabric.Links)-1].Name)
	p.keys("4")
	artifact("top-events.txt", p.has("[4: events]", "down", picture.Fabric.Links[len(picture.Fabric.Links)-1].Name))
	p.keys("1")
	p.tmux("resize-window", "-t", "top", "-x", "120", "-y", "40")
	large := p.shows("40 lines", func(text string) bool {
		lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
		return len(lines) == 40 && strings.Contains(lines[39], "quit")
	})
	artifact("top-120x40.txt", large)
	p.tmux("resize-window", "-t", "top", "-x", "50", "-y", "12")
	artifact("top-50x12.txt", p.shows("12 lines", func(text string) bool {
		lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
		return len(lines) == 12 && strings.Contains(lines[0], "weft top")
	}))
	p.keys("q")
	p.shows("an empty screen", func(text string) bool { return !strings.Contains(text, "weft top") })
	if b, err := os.ReadFile(filepath.Join(dir, "errors")); err != nil || len(b) > 0 {
		t.Errorf("%v, and on standard error: %s", err, b)
	}
}

// threeDigits writes bit/s as the figures of weft top are.
func threeDigits(x float64) string {
	unit := ""
	for _, u := range []string{" k", " M", " G"} {
		if x < 999.5 {
			break
		}
		x, unit = x/1000, u
	}
	switch {
	case x == 0 || unit == "" && x == float64(int(x)):
		return fmt.Sprintf("%.0f%s", x, unit)
	case x < 9.995:
		return fmt.Sprintf("%.2f%s", x, unit)
	case x < 99.95:
		return fmt.Sprintf("%.1f%s", x, unit)
	}
	return fmt.Sprintf("%.0f%s", x, unit)
}
