package interop

import (
	"slices"
	"strings"
)

// hostStatus is what weft status --json says of a host's failures, as far as tests
// look.
type hostStatus struct {
	Address string `json:"address"`
	Uplink  string `json:"uplink"`
	Gateway string `json:"gateway"`
	Racks   []struct {
		Plain bool   `json:"plain"`
		Why   string `json:"why"`
	} `json:"racks"`
	Failures struct {
		Down    []string `json:"down"`
		Avoided []string `json:"avoided"`
		Error   string   `json:"error"`
		Updates struct {
			Down []string `json:"down"`
		} `json:"updates"`
		Paths []pathStatus `json:"paths"`
	} `json:"failures"`
}

type pathStatus struct {
	To    string `json:"to"`
	Via   string `json:"via"`
	State string `json:"state"`
	Why   string `json:"why"`
}

// sees waits until a host's status is like that.
func (d *daemon) sees(what string, ok func(s hostStatus) bool) {
	d.n.Helper()
	var s hostStatus
	defer func() {
		if d.n.Failed() {
			d.n.Logf("%s: %+v", d.node, s.Failures)
		}
	}()
	d.n.eventually(d.node+" "+what, func() bool {
		s = hostStatus{}
		d.n.ask(d.node, &s)
		if s.Failures.Error != "" {
			d.n.Fatalf("%s: %s: %s", d.node, what, s.Failures.Error)
		}
		return ok(s)
	})
}

// wasTold waits until a host has heard that a link is down, and takes no other
// for down than those that end in of.
func (d *daemon) wasTold(link, of string) {
	d.n.Helper()
	d.sees("was told that "+link+" is down", func(s hostStatus) bool {
		return slices.Contains(s.Failures.Updates.Down, link) && slices.Contains(s.Failures.Down, link) && onlyEnd(s.Failures.Down, of)
	})
}

// foundOut waits until a host takes a link to a core for down, and no other, or avoids
// that core towards others, whose word alone it has; because of paths that it says
// what is wrong with.
func (d *daemon) foundOut(link string) {
	d.n.Helper()
	_, core, _ := strings.Cut(link, "-")
	d.sees("has found out that "+link+" is down", func(s hostStatus) bool {
		f := s.Failures
		avoids := len(f.Down) == 0 && len(f.Avoided) > 0 && onlyEnd(f.Avoided, " by "+core)
		return (avoids || slices.Equal(f.Down, []string{link})) && hasReason(s)
	})
}

// hasReason reports whether a path is out of use, and why is said.
func hasReason(s hostStatus) bool {
	for _, p := range s.Failures.Paths {
		if p.State == "quarantined" && p.Why != "" && p.Via != "" {
			return true
		}
	}
	return false
}

func onlyEnd(names []string, suffix string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return !strings.HasSuffix(name, suffix) })
}

// isWell waits until a host takes no link for down, and no path for bad.
func (d *daemon) isWell() {
	d.n.Helper()
	d.sees("takes nothing for down", func(s hostStatus) bool {
		return len(s.Failures.Down) == 0 && len(s.Failures.Updates.Down) == 0 && !slices.ContainsFunc(s.Failures.Paths, func(p pathStatus) bool {
			return p.State == "quarantined" || p.State == "down"
		})
	})
}
