package main

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weft/internal/capture"
	"weft/internal/capture/file"
	"weft/internal/daemon"
	"weft/internal/kernel/kerneltest"
	"weft/internal/slowtest"
	"weft/internal/tsharktest"
	"weft/lab"
)

// captureBed is a lab with a weft host at both ends of what is sent.
type captureBed struct {
	*testing.T
	lab *lab.Lab
	dir string
}

func newCaptureBed(t *testing.T) *captureBed {
	if err := lab.CanBuild(); err != nil {
		t.Skipf("network namespaces: %v", err)
	}
	name := kerneltest.LabName("c")
	t.Cleanup(func() {
		if _, err := lab.Down(name); err != nil {
			t.Error(err)
		}
	})
	mustWeft(t, "lab", "up", "--name", name, "--rate", "100")
	l, err := lab.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	b := &captureBed{t, l, t.TempDir()}
	config := filepath.Join(b.dir, "host.yaml")
	if err := os.WriteFile(config, []byte("mode: gateway\npolicy: drb\ntopology: fat-tree:k=4\nuser: root\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, h := range []string{"h0.0.2", "h3.1.3"} {
		b.start(b.at(h, "host", "--config", config))
	}
	b.await("all racks are carried", func(s *daemon.Status) bool {
		return s.State == daemon.StateWorking && s.Failures != nil && len(s.Failures.Paths) > 0 && len(s.Racks) == 0
	})
	return b
}

// at is a call of weft on a node.
func (b *captureBed) at(node string, args ...string) *exec.Cmd {
	return program(b.T, append([]string{"lab", "exec", "--name", b.lab.Config.Name, node, "--", "/proc/self/exe"}, args...)...)
}

// start starts a program, which ends with the test.
func (b *captureBed) start(c *exec.Cmd) {
	b.Helper()
	if err := c.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { c.Process.Kill(); c.Wait() })
}

// await waits until h0.0.2's status is so.
func (b *captureBed) await(what string, so func(*daemon.Status) bool) {
	b.Helper()
	var text []byte
	for end := time.Now().Add(kerneltest.Patience); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		var s daemon.Status
		var err error
		if text, err = b.at("h0.0.2", "status", "--json").Output(); err == nil && json.Unmarshal(text, &s) == nil && so(&s) {
			return
		}
	}
	b.Fatalf("not in time: %s\n%s", what, text)
}

// send sends bytes from h0.0.2 to a port of h3.1.3.
func (b *captureBed) send(port string, bytes int) {
	b.Helper()
	do := func(node string, f func() error) {
		b.Helper()
		n, err := b.lab.Lookup(node)
		if err == nil {
			err = b.lab.Do(n.ID, f)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	var l net.Listener
	do("h3.1.3", func() (err error) { l, err = net.Listen("tcp4", "10.3.1.3:"+port); return err })
	defer l.Close()
	got := make(chan int64, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			got <- -1
			return
		}
		n, _ := io.Copy(io.Discard, c)
		c.Close()
		got <- n
	}()
	do("h0.0.2", func() error {
		c, err := net.DialTimeout("tcp4", "10.3.1.3:"+port, kerneltest.Patience)
		if err != nil {
			return err
		}
		_, err = c.Write(make([]byte, bytes))
		return errors.Join(err, c.Close())
	})
	if n := <-got; n != int64(bytes) {
		b.Fatalf("%d bytes arrived of %d", n, bytes)
	}
}

// In a lab in which a link fails under connections: one capture of hosts and a switch, of which
// tshark understands each packet. The timeline has data on all paths before the failure, none on
// the link's after it. Weft trace finds every switch, and where packets end at the failed link.
func TestCapture_lab(t *testing.T) {
	slowtest.System(t)
	tsharktest.Require(t)
	b := newCaptureBed(t)
	packets, trace := filepath.Join(b.dir, "lab.pcapng"), filepath.Join(b.dir, "lab.json")
	cmd := program(t, "lab", "capture", "--name", b.lab.Config.Name, "h0.0.2", "h3.1.3", "c1.1:p0", "--write", packets, "--trace", trace, "--json")
	var out, says strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &says
	b.start(cmd) // its end is waited for below
	for end := time.Now().Add(kerneltest.Patience); ; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(trace); err == nil { // the sockets are open
			break
		}
		if time.Now().After(end) {
			t.Fatal("the capture does not begin")
		}
	}
	for end := time.Now().Add(slowtest.Choose(0, 2*time.Minute)); ; {
		if b.send("1001", 1_000_000); time.Now().After(end) {
			break
		}
	}
	b.checkTrace(func(tracePath, int) bool { return true })
	mustWeft(t, "lab", "fail", "--name", b.lab.Config.Name, "a0.2-c1.1")
	b.send("1002", 500_000)
	b.await("the path by c1.1 is out of use", func(s *daemon.Status) bool {
		for _, p := range s.Failures.Paths {
			if p.Bounce == "c1.1" && p.State != "up" {
				return true
			}
		}
		return false
	})
	b.send("1003", 500_000)
	// Behind the failed link nobody hears. Some switches' answers would come by it.
	b.checkTrace(func(p tracePath, hop int) bool { return p.Via != "c1.1" && hop == 6 })
	table, err := b.at("h0.0.2", "trace", "--count", "1", "-n", "10.3.1.3").Output()
	if n := strings.Count(string(table), "\n"); err != nil || n != 2+4*6 || !strings.Contains(string(table), "c2.2") {
		t.Errorf("trace prints, %v:\n%s", err, table)
	}
	if err := errors.Join(cmd.Process.Signal(os.Interrupt), cmd.Wait()); err != nil {
		t.Fatalf("%v: %s", err, says.String())
	}
	var said captureJSON
	if err := json.Unmarshal([]byte(out.String()), &said); err != nil || said.Written == 0 || said.Written != said.Matched {
		t.Errorf("it says %s, %v", out.String(), err)
	}
	lossless := true
	for source, n := range said.Dropped {
		if n > 0 {
			t.Logf("%s dropped %d packets", source, n)
			lossless = false
		}
	}
	kinds := tsharktest.CleanFile(t, packets)
	for _, k := range []string{"data", "ack", "probe"} {
		if kinds[k] == 0 {
			t.Errorf("no packet is a %s: %v", k, kinds)
		}
	}
	b.checkPackets(packets, lossless)
	ways := b.checkTimeline(trace)
	for port, want := range map[string]bool{"1001": true, "1003": false} {
		for _, via := range []string{"c1.1", "c1.2", "c2.1", "c2.2"} {
			if n := ways[port][via]; n == 0 && (want || via != "c1.1") || n > 0 && !want && via == "c1.1" {
				t.Errorf("port %s: %d segments by %s", port, n, via)
			}
		}
	}
	if again := mustWeft(t, "capture", "read", packets, "--topology", "fat-tree:k=4", "--port", "1003", "--kind", "data", "--count", "5"); strings.Count(again, "path=") != 5 {
		t.Errorf("capture read prints\n%s", again)
	}
}

// checkTrace checks what weft trace finds: which hops, from 1, must answer, each by the switch
// that is there. With the link a0.2-c1.1 down, those behind it cannot.
func (b *captureBed) checkTrace(answers func(tracePath, int) bool) {
	b.Helper()
	text, err := b.at("h0.0.2", "trace", "--json", "--count", "2", "--timeout", "5s", "h3.1.3").Output()
	var j traceJSON
	if err != nil || json.Unmarshal(text, &j) != nil || len(j.Paths) != 4 {
		b.Fatalf("trace: %v\n%s", err, text)
	}
	for _, p := range j.Paths {
		if len(p.Hops) != 6 {
			b.Errorf("path %d has %d hops", p.Path, len(p.Hops))
		}
		for i, h := range p.Hops {
			must := answers(p, i+1)
			switch {
			case h.Sent != 2 || h.Answered+h.Lost != 2:
				b.Errorf("path %d hop %d: %+v", p.Path, h.Hop, h)
			case h.Answered == 0 && must:
				b.Errorf("path %d hop %d does not answer: %+v", p.Path, h.Hop, h)
			case h.Answered > 0 && (len(h.Answers) != 1 || h.Answers[0].Node != h.Node):
				b.Errorf("path %d hop %d: %s is to answer, and it is %+v", p.Path, h.Hop, h.Node, h)
			}
		}
	}
}

// checkPackets checks that both sides of the resequencer agree, if nothing was dropped: what
// it let go had arrived.
func (b *captureBed) checkPackets(name string, lossless bool) {
	b.Helper()
	in, err := os.Open(name)
	if err != nil {
		b.Fatal(err)
	}
	defer in.Close()
	points := make(map[capture.Point]int)
	held, unknown := 0, 0
	a := capture.NewAnnotator(capture.NewTopology(b.lab.Config.Topology))
	if _, err := file.Read(in, func(r *capture.Record) error {
		n := a.Note(r)
		if n.Kind != capture.KindData {
			return nil
		}
		points[r.Point]++
		if r.Point == capture.PointDelivered {
			if r.Cause == "" {
				b.Errorf("delivered without a cause: %s", n.String())
			}
			if r.Hold > 0 {
				held++
			}
			if n.Packet.Flow.DstPort > 1000 && n.Packet.Flow.DstPort < 1004 && n.Path < 0 {
				unknown++
			}
		}
		return nil
	}); err != nil {
		b.Fatal(err)
	}
	if points[capture.PointDevice] == 0 || points[capture.PointSent] == 0 || points[capture.PointDelivered] == 0 || held == 0 ||
		lossless && (points[capture.PointArrived] != points[capture.PointDelivered] || unknown > points[capture.PointDelivered]/10) {
		b.Errorf("data was seen at %v; %d held, of %d the path is not known", points, held, unknown)
	}
}

// checkTimeline reads a timeline by its schema. It returns how many segments there are to each
// port by each bouncing switch.
func (b *captureBed) checkTimeline(name string) map[string]map[string]int {
	b.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		b.Fatal(err)
	}
	var trace struct {
		Events []struct {
			Name  string         `json:"name"`
			Phase string         `json:"ph"`
			Time  *float64       `json:"ts"`
			Dur   *float64       `json:"dur"`
			PID   *int           `json:"pid"`
			TID   *int           `json:"tid"`
			Args  map[string]any `json:"args"`
		} `json:"traceEvents"`
	}
	if err := json.Unmarshal(text, &trace); err != nil {
		b.Fatal(err)
	}
	ways, ports := make(map[string]map[string]int), make(map[int]string)
	for i, e := range trace.Events {
		if e.Name == "" || e.Time == nil || e.PID == nil || e.TID == nil || !strings.Contains("MXi", e.Phase) || e.Phase == "X" && (e.Dur == nil || *e.Dur < 0) {
			b.Fatalf("event %d is none: %+v", i, e)
		}
		if e.Name == "process_name" {
			flow := e.Args["name"].(string)
			ports[*e.PID] = flow[strings.LastIndexByte(flow, ':')+1:]
		}
		if via, ok := e.Args["via"].(string); ok && e.Phase == "X" {
			port := ports[*e.PID]
			if ways[port] == nil {
				ways[port] = make(map[string]int)
			}
			ways[port][via]++
		}
	}
	return ways
}
