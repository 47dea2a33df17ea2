package throughput

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"weft/internal/hostprog"
	"weft/internal/slowtest"
	"weft/lab"
	"weft/policy"
)

// workerEnv makes the test binary a Worker: the tests start it as such.
const workerEnv = "WEFT_TEST_THROUGHPUT_WORKER"

func TestMain(m *testing.M) {
	if os.Getenv(workerEnv) != "" {
		if err := Worker(os.Args[1], os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	clearLabs()
	os.Exit(m.Run())
}

// clearLabs takes down what test runs that were killed have left: a lab is
// named after its process.
func clearLabs() {
	first, _ := filepath.Glob("/run/netns/weft-tput*-" + fromName)
	for _, path := range first {
		l := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(path), "weft-"), "-"+fromName)
		if pid, err := strconv.Atoi(strings.TrimPrefix(l, "tput")); err == nil && syscall.Kill(pid, 0) != nil {
			lab.Down(l)
		}
	}
}

// short are options for the quickest of runs.
func short(t *testing.T, cases ...string) Options {
	t.Helper()
	if err := lab.CanBuild(); err != nil {
		t.Skipf("network namespaces: %v", err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(workerEnv, "1")
	list, err := Select(cases)
	if err != nil {
		t.Fatal(err)
	}
	l := fmt.Sprintf("tput%d", os.Getpid())
	t.Cleanup(func() {
		nothingLeft(t, l)
		lab.Down(l)
	})
	return Options{
		Cases: list, Rounds: 2, Warmup: 200 * time.Millisecond, Duration: 300 * time.Millisecond,
		Lab: l, Worker: []string{self}, Wireguard: "../wireguard",
	}
}

// nothingLeft checks that no namespace and no child is.
func nothingLeft(t *testing.T, lab string) {
	t.Helper()
	if left, _ := filepath.Glob("/run/netns/weft-" + lab + "-*"); len(left) > 0 {
		t.Errorf("namespaces left: %v", left)
	}
	out, _ := exec.Command("pgrep", "-P", fmt.Sprint(os.Getpid())).Output() // fails where there are none
	if len(out) > 0 {
		t.Errorf("children left: %s", out)
	}
}

func TestRun_everyCaseMovesItsBytes(t *testing.T) {
	slowtest.Unraced(t)
	o := short(t)
	o.Cases = slices.DeleteFunc(o.Cases, func(c Case) bool { return c.Name == stalling })
	o.Profiles = t.TempDir()
	o.Note = func(s string) { t.Log(s) }
	runs := 0
	o.Progress = func(int, int) { runs++ }
	results, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if want := 2 * len(results); runs != want || len(results) == 0 {
		t.Errorf("%d runs of %d cases", runs, len(results))
	}
	for _, r := range results {
		t.Logf("%+v", r)
		if r.Rounds != 2 || r.Gbps <= 0 || r.Min > r.Gbps || r.Max < r.Gbps || r.CPUPerGB <= 0 || r.GbpsPerCore <= 0 || r.ProcessCPUPerGB <= 0 {
			t.Errorf("%s: %+v", r.Case, r)
		}
		checkShares(t, r)
	}
	if files, _ := filepath.Glob(filepath.Join(o.Profiles, "kernel-sender-[12].pprof")); len(files) != 2 {
		t.Errorf("profiles: %v", files)
	}
}

// Both daemons find each other, carry all bytes directly, and leave nothing behind.
func TestRun_tailscale(t *testing.T) {
	slowtest.Release(t, "TestRun_everyCaseMovesItsBytes", "tailscaled, which takes minutes to compile and modules that only its own module downloads")
	o := short(t, "tailscale")
	o.Tailscale = "../tailscale"
	o.Profiles = t.TempDir()
	o.Note = func(s string) { t.Log(s) }
	results, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(results) != 1 || results[0].Rounds != 2 || results[0].Gbps <= 0 || results[0].ProcessCPUPerGB <= 0 || results[0].AllocsPerMB <= 0 {
		t.Fatalf("%+v", results)
	}
	t.Logf("%+v", results[0])
	checkShares(t, results[0])
	if files, _ := filepath.Glob(filepath.Join(o.Profiles, "tailscale-*-daemon-[12].pprof")); len(files) != 4 {
		t.Errorf("profiles: %v", files)
	}
}

// stalling is a case that now and then does not deliver the last of its bytes
// for longer than answerLimit: the kernel's MPTCP, with nothing of weft's in it.
const stalling = "kernel-mptcp"

// A stall is the kernel's own affair, and is told; that all rounds stall is ours.
func TestRun_kernelMPTCP(t *testing.T) {
	slowtest.Unraced(t)
	for attempt := range 3 {
		results, err := Run(t.Context(), short(t, stalling))
		if err != nil && strings.Contains(err.Error(), "the connection hangs") && attempt < 2 {
			t.Logf("once more: %v", err)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(results) != 1 || results[0].Rounds != 2 || results[0].Gbps <= 0 {
			t.Fatalf("%+v", results)
		}
		checkShares(t, results[0])
		return
	}
}

// checkShares makes sure that a case does with the paths what it is said to. A round
// here is short: on a busy machine it has a few flowcells only.
func checkShares(t *testing.T, r Result) {
	t.Helper()
	if len(r.PathShares) != 4 {
		t.Errorf("%s: %d paths, want 4", r.Case, len(r.PathShares))
		return
	}
	most, least := r.PathShares[0], r.PathShares[3]
	switch {
	case r.Case == "kernel" || r.Case == "tailscale" || strings.HasPrefix(r.Case, "wireguard-") || r.Case == "netstack":
		if most < 0.99 {
			t.Errorf("%s: one connection on several paths: %v", r.Case, r.PathShares)
		}
	case r.PlainRounds > 0:
		t.Logf("%s: %d rounds were plain for a while: %v", r.Case, r.PlainRounds, r.PathShares)
	case strings.Contains(r.Case, "/") && !strings.HasPrefix(r.Case, "udp/") && !strings.HasPrefix(r.Case, "tunnel/") && (least < 0.1 || most > 0.45):
		t.Errorf("%s: not on all paths alike: %v", r.Case, r.PathShares)
	}
}

func TestRun_interrupted(t *testing.T) {
	if testing.Short() {
		t.Skip("what takes seconds is left out with -short")
	}
	for _, after := range []time.Duration{0, time.Second} { // while connecting, and while warming up
		o := short(t, "kernel")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		o.Warmup = time.Hour
		o.Progress = func(int, int) { t.Error("a run of an hour was done") }
		o.Cases[0].helper = func(context.Context, *bench, Case, site) (*process, error) {
			time.AfterFunc(after, cancel)
			return nil, nil
		}
		if _, err := Run(ctx, o); !errors.Is(err, context.Canceled) {
			t.Errorf("after %v: error %v", after, err)
		}
		nothingLeft(t, o.Lab)
	}
}

// What goes wrong in one case is told, and is none of the others' business: here
// one dies with the sender's uplink spraying.
func TestRun_failureOfOneCase(t *testing.T) {
	slowtest.Unraced(t)
	o := short(t, "kernel")
	o.Rounds = 1
	broken := Case{Name: "broken", TCP: "kernel", way: kernelTCP}
	broken.helper = func(_ context.Context, b *bench, _ Case, s site) (*process, error) {
		drb, _ := policy.New("drb", policy.Options{})
		return nil, errors.Join(errors.New("an accident"), b.lab.Do(b.from, func() error {
			_, err := hostprog.AttachSpray(hostprog.SprayConfig{Uplink: uplinkName, Topology: b.topology, Self: b.from, Policy: drb,
				Addresses: []netip.Addr{b.topology.Node(b.from).Addr}, PerPacketTCP: true})
			return err
		}))
	}
	absent := Case{Name: "absent", TCP: "kernel", way: kernelTCP}
	absent.supports = func(context.Context, *bench) error { return errors.New("a part is missing") }
	unknown := Case{Name: "unknown-to-workers", TCP: "kernel", way: kernelTCP}
	o.Cases = append([]Case{broken, absent, unknown}, o.Cases...)
	var notes []string
	o.Note = func(s string) { notes = append(notes, s) }
	results, err := Run(t.Context(), o)
	for _, want := range []string{"case broken: ", "an accident", `case unknown-to-workers: receiver: case "unknown-to-workers"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not say %q", err, want)
		}
	}
	if err != nil && strings.Contains(err.Error(), "spray: ") {
		t.Errorf("the accident is another one: %v", err)
	}
	if len(results) != 1 || results[0].Case != "kernel" || results[0].OfKernel != 1 {
		t.Fatalf("results %+v", results)
	}
	checkShares(t, results[0])
	if len(notes) != 1 || !strings.Contains(notes[0], "a part is missing") {
		t.Errorf("notes %q", notes)
	}
}
