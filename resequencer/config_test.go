package resequencer

import (
	"strings"
	"testing"
	"time"
)

func TestConfig_defaultsAndErrors(t *testing.T) {
	if err := (Config{}).Validate(); err != nil {
		t.Error(err)
	}
	if c := New[int](Config{}).config; c.Hold != 10*time.Millisecond || c.Flows != DefaultFlows ||
		c.FlowBytes != DefaultFlowBytes || c.TotalPackets != DefaultTotalPackets {
		t.Errorf("%+v", c)
	}
	for name, c := range map[string]Config{
		"Hold": {Hold: -1}, "FlowPackets": {FlowPackets: -1}, "FlowBytes": {FlowBytes: -1},
		"PeerPackets": {PeerPackets: -1}, "PeerBytes": {PeerBytes: -1}, "MinHold": {MinHold: -1}, "Merge": {Merge: -1}, "Discipline": {Discipline: 9},
		"TotalPackets": {TotalPackets: -1}, "TotalBytes": {TotalBytes: -1}, "Flows": {Flows: -1},
	} {
		wantError(t, c, name)
	}
	wantError(t, Config{Hold: MaxHold + 1}, "Hold")
}

func wantError(t *testing.T, c Config, field string) {
	t.Helper()
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), field+" is") {
		t.Errorf("%+v: %v, want an error naming %s", c, err, field)
	}
}

func TestParseDiscipline_namesAndErrors(t *testing.T) {
	for _, d := range []Discipline{Presto, Sequence, Juggler, Off} {
		if got, err := ParseDiscipline(d.String()); got != d || err != nil {
			t.Errorf("%v: %v, %v", d, got, err)
		}
	}
	if _, err := ParseDiscipline("jugler"); err == nil || !strings.Contains(err.Error(), "presto, sequence, juggler, off") {
		t.Error(err)
	}
}
