package simfile

import (
	"math"
	"path/filepath"
	"time"

	"weft/bench/sim"
	"weft/internal/config"
	"weft/resequencer"
)

// File is what is to be simulated.
type File struct {
	file
	plan        plan
	resequencer resequencer.Config
	failures    []sim.Failure
	sizesName   string
	lines       config.Lines
	maxHosts    int
}

// Bounds of a file.
const (
	maxRuns     = 10_000
	maxSeeds    = 1000
	maxTime     = time.Hour
	maxCDF      = 1 << 20 // of a file, in bytes
	maxFlow     = 1 << 40 // bytes
	maxQueue    = 1 << 30
	maxFailures = 1000
	maxHosts    = 1 << 16
)

// Read reads a file of that name. Names of files in it are relative to it.
func Read(name string) (*File, error) {
	text, err := config.ReadInput(name, config.MaxBytes)
	if err != nil {
		return nil, err
	}
	return Parse(text, name)
}

// Parse reads a file's text. name is for errors, and for where other files are.
func Parse(text []byte, name string) (*File, error) { return parse(text, name, maxHosts) }

func parse(text []byte, name string, maxHosts int) (*File, error) {
	f := &File{file: defaults(), maxHosts: maxHosts}
	var err error
	if f.lines, err = config.Decode(text, name, &f.file); err != nil {
		return nil, err
	}
	if err := f.check(filepath.Dir(name)); err != nil {
		return nil, err
	}
	return f, nil
}

// Permutation is every host of a fabric sending so many bytes to another one, for at most a
// time. Its errors are config.KeyErrors.
func Permutation(topology, policy string, bytes int64, seed uint64, most time.Duration) (*File, error) {
	f := &File{file: defaults(), maxHosts: maxHosts, lines: config.Of("")}
	f.Topology, f.Policies, f.Duration, f.Drain = topology, []string{policy}, most, 0
	f.Seed = int(min(seed, math.MaxInt-1))
	f.Traffic.Matrix, f.Traffic.Arrivals, f.Traffic.Sizes.Fixed = permutation, together, int(bytes)
	return f, f.check("")
}

// check checks all that was decoded. Files are beside those of a directory.
func (f *File) check(dir string) error {
	for _, check := range []func(dir string) error{
		f.checkTimes, f.readFabric, f.readSizes, f.checkMatrix, f.checkArrivals, f.checkUnused, f.readList, f.checkQueues,
		f.readResequencer, f.readFailures, f.checkPolicies, f.checkAmount,
	} {
		if err := check(dir); err != nil {
			return err
		}
	}
	return nil
}

// beside is the path of a file that a file in a directory names.
func beside(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// wrong is an error of a key.
func (f *File) wrong(key, format string, args ...any) error {
	return f.lines.Errorf(key, format, args...)
}

func (f *File) checkTimes(string) error {
	for _, t := range []struct {
		key       string
		value     time.Duration
		least     time.Duration
		otherwise string
	}{
		{"duration", f.Duration, 1, ""}, {"drain", f.Drain, 0, ""}, {"warmup", f.Warmup, 0, ""}, {"traffic.spread", f.Traffic.Spread, 0, ""},
	} {
		if t.key == "duration" && t.value == 0 {
			return f.wrong(t.key, "missing; write how long flows begin, such as 50ms")
		}
		if t.value < t.least || t.value > maxTime {
			return f.wrong(t.key, "%v; write a time from %v to %v", t.value, t.least, maxTime)
		}
	}
	switch {
	case f.Warmup >= f.Duration:
		return f.wrong("warmup", "%v; write less than duration, %v", f.Warmup, f.Duration)
	case f.Traffic.Spread > f.Duration:
		return f.wrong("traffic.spread", "%v; write at most duration, %v", f.Traffic.Spread, f.Duration)
	case f.Seed < 0:
		return f.wrong("seed", "%d; write 0 or more", f.Seed)
	case f.Seeds < 1 || f.Seeds > maxSeeds:
		return f.wrong("seeds", "%d; write from 1 to %d", f.Seeds, maxSeeds)
	case f.Seed > math.MaxInt-f.Seeds:
		return f.wrong("seed", "%d; write a lower one, for the last of %d to be a seed", f.Seed, f.Seeds)
	}
	f.plan.length = f.Duration
	return nil
}

func (f *File) readFabric(dir string) error {
	if f.Topology == "" {
		return f.wrong("topology", "missing; write a specification such as leaf-spine:leaves=4,spines=4,hosts=4,host-rate=1000,fabric-rate=1000, or the name of a .yaml file")
	}
	spec := f.Topology
	if ext := filepath.Ext(spec); ext == ".yaml" || ext == ".yml" {
		spec = beside(dir, spec)
	}
	var err error
	p := &f.plan.fabric
	if p.computed, p.graph, err = config.Fabric(spec); err != nil {
		return f.wrong("topology", "%w", err)
	}
	if n := p.hosts(); n < 2 || n > f.maxHosts {
		return f.wrong("topology", "it has %d hosts; write one of 2 to %d", n, f.maxHosts)
	}
	if err := p.needsRates(); err != nil {
		return f.wrong("topology", "%w", err)
	}
	return nil
}
