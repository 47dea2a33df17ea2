package weft

import (
	"go/build"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"weft/internal/slowtest"
)

// module is the module's path, whatever it is called.
var module = path.Clean("weft/.")

// lattice lists what each package may import of weft's own, tests aside. A
// package that is not listed may not exist. "Pure" packages do no I/O, read no
// clock and start no goroutine: they take the time as an argument.
var lattice = parseLattice(`
.:
topology: topology/graph
topology/graph:
topology/graph/graphtest: topology/graph  // for tests
topology/graph/operator: topology topology/graph
internal/discover: topology/graph
internal/frr:
internal/switchconf: topology/graph internal/discover encap
flowcell:
drb:
encap:
mesh: encap
mesh/join: encap mesh
mesh/etcd: mesh mesh/join
mesh/lists: mesh mesh/join
mesh/keyfile: mesh
mesh/open: internal/etcdclient mesh/etcd mesh/join mesh/lists
internal/etcdclient:
internal/etcdclient/etcdtest: internal/kernel/kerneltest  // for tests
internal/checksum:
internal/exitcode:
internal/bugreport:
internal/config: internal/exitcode topology topology/graph topoupdate
internal/service: internal/event internal/eventlog
internal/bucket:
internal/hops: encap flowcell internal/paths topology
internal/hops/walker: encap flowcell internal/capture internal/capture/socket internal/exitcode internal/hops
internal/tsharktest:  // for tests
internal/capture: conga encap flowcell hedera/wire internal/paths topology topoupdate
internal/capture/tap: internal/capture
internal/capture/file: internal/capture
internal/capture/socket: internal/capture internal/exitcode internal/shortage
internal/capture/stream: internal/capture internal/capture/tap internal/exitcode resequencer
internal/capture/session: internal/capture
internal/classifier:
internal/elephant:
internal/scheduling/schedulingtest: hedera/wire topology topoupdate  // for tests
internal/scheduling: flowcell hedera/wire internal/config internal/elephant internal/event internal/eventlog internal/kernel topology topoupdate
internal/timerq:
internal/probe: topology encap liveness luopan internal/bucket internal/paths
internal/shortage:
internal/shortage/few:  // for tests
internal/slowtest:
internal/kernel/disturb: internal/kernel  // for tests and benchmarks
internal/kernel/kerneltest: internal/kernel internal/kernel/disturb internal/kernel/internal/seam internal/shortage/few topology  // for tests
internal/kernel/internal/seam:
internal/tools/...:  // no other package needs them
internal/tools/picture: internal/live internal/live/ui topology  // for tests
internal/golden:
internal/histogram:
internal/mplstest: encap  // for tests
internal/chaos: topology
internal/balance: drb conga
internal/qcn:
luopan: internal/bucket internal/timerq
conga:
backlog:
reps:
gso: flowcell internal/checksum
policy: flowcell drb reps
resequencer: flowcell internal/histogram
resequencer/gro: flowcell
topoupdate: topology internal/bucket
hedera: topology topology/graph flowcell
hedera/wire: flowcell internal/bucket topoupdate
hedera/store: flowcell hedera
hedera/store/storetest: internal/kernel/kerneltest  // for tests
internal/schedulerd: flowcell hedera hedera/store hedera/wire internal/config internal/elephant internal/etcdclient internal/event internal/eventlog internal/exitcode internal/kernel internal/metrics internal/service topology topology/graph topoupdate topoupdate/listen
topoupdate/bgp: topology topology/graph
topoupdate/bgp/session: topoupdate/bgp topology/graph
topoupdate/bgp/learn: topology topology/graph topoupdate/bgp topoupdate/bgp/session internal/bucket
topoupdate/wire: internal/exitcode topoupdate internal/shortage
topoupdate/listen: topology topoupdate topoupdate/wire
liveness: topology encap internal/bucket internal/histogram internal/timerq
internal/blame: topology liveness
link: internal/exitcode internal/checksum internal/shortage
internal/kernel: internal/elephant internal/exitcode internal/kernel/internal/seam internal/shortage
internal/congestion: internal/kernel
internal/hostprog: topology flowcell drb policy encap conga internal/elephant internal/kernel internal/paths internal/qcn
internal/hostsetup: topology encap internal/hostprog internal/kernel
fabric: topology topology/graph encap internal/balance internal/bucket internal/classifier internal/elephant internal/kernel internal/qcn
lab: internal/exitcode topology topology/graph fabric internal/frr internal/kernel internal/switchconf
internal/clock: internal/timerq
internal/lookout: topology encap liveness internal/clock internal/event internal/eventlog internal/probe
internal/paths: topology encap drb conga
internal/fate: flowcell policy
internal/dataplane: topology flowcell drb policy resequencer resequencer/gro gso encap link liveness luopan conga backlog internal/capture internal/capture/tap internal/checksum internal/clock internal/fate internal/paths internal/probe mesh
internal/dataplane/dataplanetest: topology encap link internal/checksum internal/clock  // for tests
stack: topology flowcell policy resequencer resequencer/gro encap link liveness conga internal/capture/tap internal/clock internal/dataplane third_party/netstack/tcp internal/bucket internal/lookout internal/probe mesh
uplink: conga encap internal/event internal/eventlog internal/hostprog internal/hostsetup link liveness policy topology stack
uplink/kernelhost: encap internal/daemon policy resequencer stack topology uplink
fabrictest: internal/simnet stack topology
internal/simnet: topology flowcell encap conga link internal/timerq
internal/simnet/world: internal/simnet internal/checksum internal/dataplane stack topology encap gso link liveness policy resequencer resequencer/gro internal/timerq internal/lookout internal/probe
internal/simnet/...: internal/simnet stack topology topoupdate link internal/timerq
internal/pacing: encap internal/hostprog internal/kernel internal/qcn
internal/interop:
internal/overview:
internal/live:
internal/live/source: internal/daemon internal/kernel internal/live internal/overview internal/service lab topology
internal/live/top: internal/live
internal/live/ui: internal/live
internal/table:
internal/doctor: internal/overview
internal/doctor/gather: fabric internal/config internal/daemon internal/discover internal/doctor internal/hostsetup internal/kernel internal/overview internal/service internal/switchd
internal/event:
internal/eventlog: internal/event
internal/prober: internal/exitcode internal/shortage encap link liveness luopan topology internal/bucket internal/clock internal/lookout internal/probe internal/paths
internal/metrics: liveness resequencer internal/dataplane internal/histogram internal/probe
stack/metrics: stack internal/metrics
stack/capture: internal/capture internal/capture/file internal/capture/tap stack
internal/switchd: internal/exitcode encap fabric hedera/wire internal/elephant internal/scheduling topology topoupdate topoupdate/wire internal/config internal/event internal/eventlog internal/kernel internal/lookout internal/metrics internal/service
internal/daemon: internal/capture/stream internal/capture/tap mesh mesh/join mesh/keyfile mesh/open hedera/wire internal/elephant internal/scheduling internal/exitcode internal/blame conga internal/event internal/eventlog internal/kernel internal/lookout internal/congestion topology/graph topoupdate/bgp topoupdate/bgp/learn topoupdate/bgp/session internal/hostprog internal/hostsetup internal/dataplane link stack encap policy flowcell resequencer topology topoupdate topoupdate/listen liveness luopan internal/probe internal/paths internal/prober internal/checksum internal/config internal/metrics internal/service internal/pacing internal/qcn
bench/...: ...
cmd/weft: ...
cmd/weft/uitest:  // a module of its own, for tests
examples:
examples/httpserver: examples/start
examples/httpget: examples/start
examples/proxy: examples/start stack
examples/bgp: stack topoupdate/bgp/learn topoupdate/bgp/session uplink
examples/start: stack topology topoupdate/listen uplink
examples/grpc: stack topology uplink  // a module of its own
otelweft: stack  // the same
packaging/build:  // the same
packaging/image:  // the same
packaging/kubernetes/validate:  // the same
examples/exampletest:  // for tests
examples/rootless: stack link encap
examples/mesh: encap link mesh mesh/join mesh/keyfile mesh/open stack

// A patched copy of one of gVisor's packages.
third_party/netstack:
third_party/netstack/tcp: third_party/netstack/internal/tcp
third_party/netstack/internal/tcp:
`)

// parseLattice reads lines of a package's folder, a colon and the folders of what it may
// import; "..." stands for all.
func parseLattice(text string) map[string][]string {
	rules := make(map[string][]string)
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "//")
		if name, imports, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			for _, imp := range append([]string{name}, strings.Fields(imports)...) {
				rules[path.Join(module, name)] = append(rules[path.Join(module, name)], path.Join(module, imp))
			}
		}
	}
	return rules
}

// pure packages may not import these, and must build anywhere.
var (
	pure     = []string{"weft/topology", "weft/flowcell", "weft/drb", "weft/encap", "weft/policy", "weft/resequencer", "weft/resequencer/gro", "weft/gso", "weft/internal/checksum", "weft/topoupdate", "weft/liveness", "weft/luopan", "weft/conga", "weft/backlog", "weft/reps", "weft/internal/chaos", "weft/internal/paths", "weft/internal/fate", "weft/bench/sim/tcp", "weft/bench/sim/spray", "weft/bench/sim/workload", "weft/bench/sim/slotted", "weft/bench/sim/aqm", "weft/bench/sim/fluid", "weft/bench/papers/parts", "weft/internal/balance", "weft/internal/qcn", "weft/internal/bucket", "weft/internal/histogram", "weft/internal/classifier", "weft/internal/elephant", "weft/internal/timerq", "weft/internal/probe", "weft/internal/mplstest", "weft/internal/discover", "weft/internal/switchconf", "weft/topology/graph", "weft/topology/graph/operator", "weft/topoupdate/bgp", "weft/internal/overview", "weft/internal/event", "weft/internal/blame", "weft/hedera", "weft/internal/bugreport", "weft/internal/doctor", "weft/mesh", "weft/internal/capture", "weft/internal/hops", "weft/internal/live", "weft/internal/live/top", "weft/internal/table"}
	impure   = []string{"net", "os", "sync", "syscall", "log", "log/slog", "unsafe", "golang.org/x/sys/unix"}
	onlyHere = map[string][]string{ // who may import what is heavy or tied to Linux
		"gvisor.dev/gvisor/": {"weft/stack", "weft/bench/", "weft/third_party/netstack/"},
		"weft/third_party/":  {"weft/stack", "weft/third_party/netstack/"},
		// A Host runs the patched copy: the options of the other one are of other types.
		"gvisor.dev/gvisor/pkg/tcpip/transport/tcp": {"weft/bench/"},
		"github.com/songgao/water":                  {"weft/link"},
		"github.com/gopacket/":                      {"weft/internal/capture/file", "weft/internal/tsharktest"},
		"github.com/vishvananda/":                   {"weft/link", "weft/internal/kernel", "weft/internal/hostprog", "weft/internal/hostsetup", "weft/fabric", "weft/lab", "weft/topoupdate/wire", "weft/internal/prober", "weft/internal/doctor/gather", "weft/bench/"},
		"github.com/cilium/ebpf":                    {"weft/internal/kernel", "weft/internal/hostprog", "weft/internal/congestion", "weft/fabric", "weft/lab"},
		"github.com/spf13/cobra":                    {"weft/cmd/weft", "weft/packaging/build"},
		"github.com/charmbracelet/":                 {"weft/cmd/weft"},
		// Programs that embed a Host link Prometheus' client only if they import stack/metrics.
		"github.com/prometheus/": {"weft/internal/metrics", "weft/internal/service", "weft/internal/daemon", "weft/internal/switchd", "weft/internal/schedulerd", "weft/stack/metrics"},
		"github.com/osrg/gobgp":  {"weft/topoupdate/bgp/session"},
		// Nodes report by hedera/wire, which needs no etcd.
		"go.etcd.io/etcd/":        {"weft/hedera/store", "weft/internal/schedulerd", "weft/internal/etcdclient", "weft/mesh/etcd"},
		"go.etcd.io/etcd/server/": {"weft/hedera/store/storetest"},
		"go.yaml.in/yaml":         {"weft/internal/config", "weft/internal/discover", "weft/topology"},
	}
)

// packages returns the imports of every package of the module, by path.
func packages(t *testing.T) map[string][]string {
	t.Helper()
	all := make(map[string][]string)
	err := filepath.WalkDir(".", func(dir string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if name := d.Name(); dir != "." && (name[0] == '.' || name == "testdata") {
			return filepath.SkipDir
		}
		ctx := build.Default
		ctx.GOOS = "linux"
		p, err := ctx.ImportDir(dir, 0)
		if _, none := err.(*build.NoGoError); none {
			return nil
		}
		if err != nil {
			return err
		}
		all[path.Join(module, filepath.ToSlash(dir))] = p.Imports
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// rule returns what a package may import.
func rule(path string) ([]string, bool) {
	if r, ok := lattice[path]; ok {
		return r, true
	}
	for p, r := range lattice {
		if prefix, ok := strings.CutSuffix(p, "/..."); ok && strings.HasPrefix(path, prefix+"/") {
			return r, true
		}
	}
	return nil, false
}

func TestArchitecture_importLattice(t *testing.T) {
	for path, imports := range packages(t) {
		allowed, ok := rule(path)
		if !ok {
			t.Errorf("%s is not in the lattice: say there what it may import", path)
			continue
		}
		for _, imp := range imports {
			if !strings.HasPrefix(imp, "weft/") || slices.Contains(allowed, "weft/...") {
				continue
			}
			if !slices.Contains(allowed, imp) {
				t.Errorf("%s imports %s; the lattice allows %v", path, imp, allowed)
			}
		}
	}
}

func TestArchitecture_purePackagesDoNoIO(t *testing.T) {
	all := packages(t)
	for _, path := range pure {
		for _, imp := range all[path] {
			if slices.Contains(impure, imp) {
				t.Errorf("%s imports %s, but is to be pure", path, imp)
			}
		}
	}
}

func TestArchitecture_heavyDependenciesStayAtTheEdges(t *testing.T) {
	for path, imports := range packages(t) {
		for _, imp := range imports {
			for prefix, allowed := range onlyHere {
				if !strings.HasPrefix(imp, prefix) {
					continue
				}
				if !slices.ContainsFunc(allowed, func(a string) bool { return strings.HasPrefix(path+"/", a) }) {
					t.Errorf("%s imports %s; only %v may", path, imp, allowed)
				}
			}
		}
	}
}

// wallClock may look at the time of day; what it does is not to depend on nobody
// setting the clock. Everything else measures by time.Since and the like.
var wallClock = map[string]string{
	"mesh/join/register.go":                   "serials begin with it: they grow over restarts",
	"encap/udpseal.go":                        "numbers begin with it",
	"internal/dataplane/tunnelsend.go":        "numbers follow it",
	"stack/virtual.go":                        "an epoch of its own",
	"internal/service/clock_linux.go":         "",
	"packaging/build/source.go":               "a commit's date",
	"internal/capture/stream/wire.go":         "the same, between processes",
	"internal/capture/socket/socket_linux.go": "a packet's time of day, for a file",
	"internal/switchd/config.go":              "the number of a start, for want of a better one",
	"internal/switchd/run_linux.go":           "times of keys",
}

// A time of day that is turned into a number, or out of one, has lost the monotonic
// clock: what is computed with it goes wrong when somebody sets the clock.
func TestArchitecture_timeOfDayIsNotMeasuredWith(t *testing.T) {
	lost := regexp.MustCompile(`\.Unix(Nano|Milli|Micro)?\(\)|\btime\.Unix(Milli|Micro)?\(|\.Round\(0\)|CLOCK_REALTIME`)
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if name != "." && (name == "bench" || name == "third_party" || strings.HasPrefix(name, ".")) {
				return filepath.SkipDir
			}
			return err
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if _, ok := wallClock[filepath.ToSlash(name)]; !ok && lost.Match(text) {
			t.Errorf("%s: %s: measure by time.Since, or say in wallClock why not", name, lost.Find(text))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestHygiene_gofmt(t *testing.T) {
	out, err := exec.Command("gofmt", "-l", ".").Output()
	if err != nil {
		t.Skipf("gofmt does not run here: %v", err)
	}
	if len(out) > 0 {
		t.Errorf("gofmt would change:\n%s", out)
	}
}

func TestHygiene_vet(t *testing.T) {
	slowtest.System(t)
	if out, err := exec.Command("go", "vet", "./...").CombinedOutput(); err != nil {
		t.Errorf("go vet: %v\n%s", err, out)
	}
}

// What is pure must build for every system that Go knows.
func TestHygiene_vetPureElsewhere(t *testing.T) {
	slowtest.System(t)
	cmd := exec.Command("go", append([]string{"vet"}, relative(pure)...)...)
	cmd.Env = append(cmd.Environ(), "GOOS=darwin")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("GOOS=darwin go vet: %v\n%s", err, out)
	}
}

func relative(paths []string) []string {
	var r []string
	for _, p := range paths {
		r = append(r, "."+strings.TrimPrefix(p, module))
	}
	return r
}
