package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"weft/bench/report"
)

// runInfo says where results are from: when, by what, on which machine, with which seeds. All
// that a command measures or simulates comes with one.
type runInfo struct {
	Date       string   `json:"date"` // RFC 3339, UTC
	Command    string   `json:"command"`
	Version    string   `json:"version"`
	Commit     string   `json:"commit"`   // "unknown" if weft was built without
	Modified   bool     `json:"modified"` // the checkout had changes
	Go         string   `json:"go"`
	Platform   string   `json:"platform"` // linux/amd64
	Kernel     string   `json:"kernel"`   // as weft version has it; "" if it does not say
	Processor  string   `json:"processor"`
	Processors int      `json:"processors"`
	Seeds      []uint64 `json:"seeds"` // [] if nothing is random
}

// newRunInfo is of a run that begins now, with seeds from a first one on.
func newRunInfo(seed uint64, seeds int) runInfo {
	r := runInfo{
		Date: time.Now().UTC().Format(time.RFC3339), Command: commandLine(),
		Version: "unknown", Commit: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Kernel: kernelRelease(), Processor: cpuModel(), Processors: runtime.NumCPU(), Seeds: []uint64{},
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		v := versionOf(info)
		r.Version, r.Modified = v.Version, v.Modified
		if v.Revision != "" {
			r.Commit = v.Revision
		}
	}
	for i := range seeds {
		r.Seeds = append(r.Seeds, seed+uint64(i))
	}
	return r
}

// day is the date with the minute, for people.
func (r runInfo) day() string {
	t, err := time.Parse(time.RFC3339, r.Date)
	if err != nil {
		return r.Date
	}
	return t.Format("2006-01-02 15:04 UTC")
}

// build says what weft was built from.
func (r runInfo) build() string {
	s := fmt.Sprintf("%s, commit %.12s", r.Version, r.Commit)
	if r.Modified {
		s += " with changes"
	}
	return s + ", " + r.Go
}

// machine says what it ran on.
func (r runInfo) machine() string {
	s := fmt.Sprintf("%s, %d processors, %s", r.Processor, r.Processors, r.Platform)
	if r.Kernel != "" {
		s += ", " + r.Kernel
	}
	return s
}

// seeds says which; "" if there are none.
func (r runInfo) seeds() string {
	switch n := len(r.Seeds); n {
	case 0:
		return ""
	case 1:
		return fmt.Sprint(r.Seeds[0])
	default:
		return fmt.Sprintf("%d to %d", r.Seeds[0], r.Seeds[n-1])
	}
}

// String is a run in two lines.
func (r runInfo) String() string {
	s := fmt.Sprintf("%s; weft %s", r.day(), r.build())
	if len(r.Seeds) > 0 {
		s += "; seed " + r.seeds()
	}
	return s + "\n" + r.machine()
}

// tell writes the run to standard error, where what a command prints is the same in every run.
func (r runInfo) tell() { fmt.Fprintln(os.Stderr, r) }

// facts are what a page says of a run.
func (r runInfo) facts() []report.Fact {
	f := []report.Fact{{Name: "Date", Value: r.day()}, {Name: "Weft", Value: r.build()}, {Name: "Machine", Value: r.machine()}}
	if len(r.Seeds) > 0 {
		f = append(f, report.Fact{Name: "Seed", Value: r.seeds()})
	}
	return f
}
