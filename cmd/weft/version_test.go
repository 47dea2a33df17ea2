package main

import (
	"encoding/json"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

func TestVersion(t *testing.T) {
	v := versionOf(&debug.BuildInfo{GoVersion: "go1.26", Main: debug.Module{Path: "weft", Version: "v0.1.0"}, Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.time", Value: "2026-11-22T00:00:00Z"}, {Key: "vcs.modified", Value: "true"},
		{Key: "GOOS", Value: "linux"}, {Key: "GOARCH", Value: "arm64"},
	}})
	if got, want := v.String(), "weft v0.1.0, commit 0123456789ab of 2026-11-22T00:00:00Z, with changes, go1.26, linux/arm64"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if out := mustWeft(t, "version"); !strings.Contains(out, runtime.Version()) {
		t.Error(out)
	}
	if err := json.Unmarshal([]byte(mustWeft(t, "version", "--json")), &v); err != nil || v.Go != runtime.Version() {
		t.Error(v, err)
	}
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		if want := "Linux " + strings.TrimSpace(string(release)); v.Kernel != want || !strings.HasSuffix(v.String(), ", on "+want) {
			t.Errorf("%s; want the kernel %s", v, want)
		}
	}
	wantError(t, "version now", "now")
}
