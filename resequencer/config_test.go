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
