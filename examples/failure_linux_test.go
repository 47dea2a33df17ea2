package examples

import (
	"regexp"
	"strconv"
	"testing"

	"weft/internal/slowtest"
	"weft/lab"
)

// sentBy finds in what httpget says the bytes sent to each bouncing switch.
var sentBy = regexp.MustCompile(`\{(10\.4\.\d\.\d) [0-9 ]*?(\d+)\}`)

// A core swallows everything and nobody says so. Client and server find out by
// themselves: what is sent goes by the other cores.
func TestExamples_aSpineDiesSilently(t *testing.T) {
	slowtest.System(t)
	need(t, "nsenter")
	s := newSetting(t)
	s.start(t, "h3.1.3", "10.3.1.131:8080", "httpserver", "-address", "10.3.1.131", "-dir", s.dir)
	if _, err := s.lab.Fail("3.1", lab.FailSilent); err != nil {
		t.Fatal(err)
	}
	get := s.command(t, "h0.0.2", "httpget", "-address", "10.0.0.130", "http://10.3.1.131:8080/file")
	said := new(messages)
	get.Stderr = said
	s.check(t, get)
	bytes := make(map[string]int)
	for _, m := range sentBy.FindAllStringSubmatch(said.String(), -1) {
		bytes[m[1]], _ = strconv.Atoi(m[2])
	}
	dead, _ := s.lab.Config.Topology.Lookup("3.1")
	for core, n := range bytes {
		if core != dead.Addr.String() && bytes[dead.Addr.String()] > n/2 {
			t.Errorf("sent to the dead core is as much as to others: %v", bytes)
		}
	}
	if len(bytes) < 3 {
		t.Errorf("sent by %v, said %q", bytes, said)
	}
}
