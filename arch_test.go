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
)

// module is the module's path, whatever it is called.
var module = path.Clean("weft/.")

// lattice lists what each package may import of weft's own, tests aside. A
// package that is not listed may not exist. "Pure" packages do no I/O, read no
// clock and start no goroutine: they take the time as an argument.
var lattice = map[string][]string{
	module:                            {},
	"weft/topology":                   {},
	"weft/flowcell":                   {},
	"weft/drb":                        {},
	"weft/encap":                      {},
	"weft/internal/checksum":          {},
	"weft/internal/bucket":            {},
	"weft/internal/timerq":            {},
	"weft/internal/probe":             {"weft/encap", "weft/internal/bucket", "weft/liveness", "weft/topology"},
	"weft/internal/nearest":           {},
	"weft/internal/strictyaml":        {"weft/internal/nearest"},
	"weft/internal/notify":            {},
	"weft/internal/shortage":          {},
	"weft/internal/shortage/few":      {},                                                                      // for tests
	"weft/internal/kernel/kerneltest": {"weft/internal/kernel", "weft/internal/shortage/few", "weft/topology"}, // for tests
	"weft/internal/tools/...":         {},                                                                      // no other package needs them
	"weft/internal/privileges":        {},
	"weft/internal/steadyclock":       {},
	"weft/internal/memlimit":          {},
	"weft/internal/statussocket":      {},
	"weft/internal/chaos":             {"weft/topology"},
	"weft/internal/topofile":          {"weft/topology"},
	"weft/luopan":                     {"weft/internal/bucket", "weft/internal/timerq"},
	"weft/conga":                      {},
	"weft/local":                      {},
	"weft/gso":                        {"weft/flowcell", "weft/internal/checksum"},
	"weft/policy":                     {"weft/flowcell", "weft/drb"},
	"weft/resequencer":                {"weft/flowcell"},
	"weft/resequencer/gro":            {"weft/flowcell"},
	"weft/topoupdate":                 {"weft/topology", "weft/internal/bucket"},
	"weft/topoupdate/wire":            {"weft/topoupdate", "weft/internal/shortage"},
	"weft/topoupdate/listen":          {"weft/topology", "weft/topoupdate", "weft/topoupdate/wire"},
	"weft/liveness":                   {"weft/topology", "weft/encap", "weft/internal/bucket", "weft/internal/timerq"},
	"weft/link":                       {"weft/internal/checksum", "weft/internal/shortage"},
	"weft/internal/kernel":            {"weft/internal/shortage"},
	"weft/internal/hostprog":          {"weft/topology", "weft/flowcell", "weft/drb", "weft/policy", "weft/encap", "weft/internal/kernel"},
	"weft/internal/hostsetup":         {"weft/topology", "weft/encap", "weft/internal/hostprog", "weft/internal/kernel"},
	"weft/fabric":                     {"weft/topology", "weft/encap", "weft/internal/kernel"},
	"weft/lab":                        {"weft/topology", "weft/fabric", "weft/internal/kernel"},
	"weft/stack":                      {"weft/topology", "weft/flowcell", "weft/drb", "weft/policy", "weft/resequencer", "weft/resequencer/gro", "weft/gso", "weft/encap", "weft/link", "weft/liveness", "weft/luopan", "weft/conga", "weft/local", "weft/internal/checksum", "weft/third_party/netstack/tcp", "weft/internal/bucket", "weft/internal/probe"},
	"weft/uplink":                     {"weft/encap", "weft/internal/hostprog", "weft/internal/hostsetup", "weft/link", "weft/liveness", "weft/policy", "weft/topology"},
	"weft/fabrictest":                 {"weft/internal/simnet", "weft/stack", "weft/topology"},
	"weft/internal/simnet":            {"weft/topology", "weft/flowcell", "weft/encap", "weft/conga", "weft/link", "weft/internal/timerq"},
	"weft/internal/simnet/world":      {"weft/internal/simnet", "weft/internal/checksum", "weft/stack", "weft/topology", "weft/encap", "weft/gso", "weft/link", "weft/liveness", "weft/policy", "weft/resequencer", "weft/resequencer/gro", "weft/internal/timerq", "weft/internal/probe"},
	"weft/internal/simnet/...":        {"weft/internal/simnet", "weft/stack", "weft/topology", "weft/topoupdate", "weft/link", "weft/internal/timerq"},
	"weft/internal/interop":           {},
	"weft/internal/updatekeys":        {"weft/internal/strictyaml", "weft/topoupdate"},
	"weft/internal/prober":            {"weft/internal/shortage", "weft/encap", "weft/link", "weft/liveness", "weft/luopan", "weft/topology", "weft/internal/bucket", "weft/internal/probe"},
	"weft/internal/switchd":           {"weft/encap", "weft/fabric", "weft/topology", "weft/topoupdate", "weft/topoupdate/wire", "weft/internal/notify", "weft/internal/memlimit", "weft/internal/steadyclock", "weft/internal/privileges", "weft/internal/statussocket", "weft/internal/strictyaml", "weft/internal/topofile", "weft/internal/updatekeys"},
	"weft/internal/daemon":            {"weft/internal/hostprog", "weft/internal/hostsetup", "weft/link", "weft/stack", "weft/encap", "weft/policy", "weft/flowcell", "weft/resequencer", "weft/topology", "weft/topoupdate", "weft/topoupdate/listen", "weft/liveness", "weft/luopan", "weft/internal/notify", "weft/internal/memlimit", "weft/internal/steadyclock", "weft/internal/prober", "weft/internal/privileges", "weft/internal/statussocket", "weft/internal/strictyaml", "weft/internal/topofile", "weft/internal/updatekeys"},
	"weft/bench/...":                  {"weft/..."},
	"weft/cmd/weft":                   {"weft/..."},
	"weft/examples":                   {},
	"weft/examples/httpserver":        {"weft/stack", "weft/topology", "weft/topoupdate/listen", "weft/uplink"},
	"weft/examples/httpget":           {"weft/stack", "weft/topology", "weft/topoupdate/listen", "weft/uplink"},
	"weft/examples/proxy":             {"weft/stack", "weft/topology", "weft/topoupdate/listen", "weft/uplink"},
	"weft/examples/grpc":              {"weft/stack", "weft/topology", "weft/uplink"}, // a module of its own
	"weft/examples/rootless":          {"weft/stack", "weft/link", "weft/encap"},

	// A patched copy of one of gVisor's packages.
	"weft/third_party/netstack":              {},
	"weft/third_party/netstack/tcp":          {"weft/third_party/netstack/internal/tcp"},
	"weft/third_party/netstack/internal/tcp": {},
}

// pure packages may not import these, and must build anywhere.
var (
	pure     = []string{"weft/topology", "weft/flowcell", "weft/drb", "weft/encap", "weft/policy", "weft/resequencer", "weft/resequencer/gro", "weft/gso", "weft/internal/checksum", "weft/internal/bucket", "weft/internal/timerq", "weft/internal/probe", "weft/topoupdate", "weft/liveness", "weft/luopan", "weft/conga", "weft/local", "weft/internal/chaos", "weft/internal/nearest", "weft/bench/sim/tcp", "weft/bench/sim/spray", "weft/bench/sim/workload", "weft/bench/sim/slotted", "weft/bench/sim/fluid"}
	impure   = []string{"net", "os", "sync", "syscall", "log", "log/slog", "unsafe", "golang.org/x/sys/unix"}
	onlyHere = map[string][]string{ // who may import what is heavy or tied to Linux
		"gvisor.dev/gvisor/": {"weft/stack", "weft/bench/", "weft/third_party/netstack/"},
		"weft/third_party/":  {"weft/stack", "weft/third_party/netstack/"},
		// A Host runs the patched copy: the options of the other one are of other types.
		"gvisor.dev/gvisor/pkg/tcpip/transport/tcp": {"weft/bench/"},
		"github.com/songgao/water":                  {"weft/link"},
		"github.com/vishvananda/":                   {"weft/link", "weft/internal/kernel", "weft/internal/hostprog", "weft/internal/hostsetup", "weft/fabric", "weft/lab", "weft/topoupdate/wire", "weft/internal/prober", "weft/bench/"},
		"github.com/cilium/ebpf":                    {"weft/internal/kernel", "weft/internal/hostprog", "weft/fabric", "weft/lab"},
		"github.com/spf13/cobra":                    {"weft/cmd/weft"},
		"go.yaml.in/yaml":                           {"weft/internal/strictyaml", "weft/topology"},
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
	"encap/udpseal.go":                    "numbers begin with it",
	"stack/tunnelsend.go":                 "numbers follow it",
	"stack/virtual.go":                    "an epoch of its own",
	"internal/steadyclock/clock_linux.go": "",
	"internal/switchd/config.go":          "the number of a start, for want of a better one",
	"internal/switchd/run_linux.go":       "times of keys",
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
	if testing.Short() {
		t.Skip("go vet is left out with -short")
	}
	if out, err := exec.Command("go", "vet", "./...").CombinedOutput(); err != nil {
		t.Errorf("go vet: %v\n%s", err, out)
	}
}

// What is pure must build for every system that Go knows.
func TestHygiene_vetPureElsewhere(t *testing.T) {
	if testing.Short() {
		t.Skip("go vet is left out with -short")
	}
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
