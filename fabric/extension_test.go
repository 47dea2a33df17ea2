package fabric

import (
	"strings"
	"testing"
)

func TestCheckExtensions(t *testing.T) {
	good := Extension{Object: "/x.o", Program: "x"}
	for want, list := range map[string][]Extension{
		"":                                {good, good, {Pinned: "/sys/fs/bpf/x"}},
		"9 extensions, at most 8":         {good, good, good, good, good, good, good, good, good},
		"extension 1: neither an object":  {good, {Program: "x"}},
		"extension 0: program is missing": {{Object: "/x.o"}},
		"extension 0: both a pinned":      {{Object: "x.o", Program: "x", Pinned: "y"}},
		"object x.o: give the path":       {{Object: "x.o", Program: "x"}},
		"pinned y: give the path":         {{Pinned: "y"}},
		"must be the last":                {{Pinned: "/y"}, good},
	} {
		if err := CheckExtensions(list); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// The last line that says something is the reason, in words where they are known.
func TestRefusal(t *testing.T) {
	for want, log := range map[string][]string{
		"check that the packet reaches so far (\"invalid access to packet, off=14": {"0: R1=ctx() R10=fp0", "invalid access to packet, off=14 size=1", "processed 3 insns (limit 1000000)", ""},
		`refuses it: "something new"`: {"something new", "verification time 5 usec", "stack depth 0"},
		"does not say why":            nil,
		"check that the value exists": {"R0 invalid mem access 'map_value_or_null'"},
		"never set":                   {"R2 !read_ok"},
		"outside of its stack":        {"invalid write to stack R10 off=-520 size=8"},
		// Words that others explain are none of theirs.
		`refuses it: "R1 type=fp stack`:         {"R1 type=fp stack expected"},
		`refuses it: "too many subprograms"`:    {"too many subprograms"},
		`refuses it: "Unreleased reference le`:  {"Unreleased reference leak"},
		`refuses it: "R1 invalid mem access 'c`: {"R1 invalid mem access 'ctx'"},
	} {
		if got := refusal(log); !strings.Contains(got, want) {
			t.Errorf("%q: %s", log, got)
		}
	}
}
