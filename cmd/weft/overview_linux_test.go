package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"weft/fabric"
	"weft/internal/daemon"
	"weft/internal/dataplane"
	"weft/internal/hostprog"
	"weft/internal/overview"
	"weft/internal/service"
	"weft/internal/switchd"
)

// jsonKeys collects the keys of a type in JSON with all that is in it, as a.b.c; elements of
// lists have the name of the list.
func jsonKeys(t reflect.Type, name string, into map[string]reflect.Kind) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	switch {
	case leaf(t): // such as netip.Addr
		into[name] = reflect.String
		return
	case t.Kind() != reflect.Struct:
		into[name] = t.Kind()
		return
	}
	for i := range t.NumField() {
		f := t.Field(i)
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		held := f.Type
		if h, ok := behind[t.String()+"."+f.Name]; ok {
			held = reflect.TypeOf(h)
		}
		switch {
		case f.Anonymous && key == "":
			jsonKeys(held, name, into)
		case key != "-" && f.IsExported():
			jsonKeys(held, strings.TrimPrefix(name+"."+key, "."), into)
		}
	}
}

// unions are types of package overview that stand for several of the daemons', by the keys
// where they are: a field is another's if one of these has it.
var unions = map[string][]string{
	"decap": {"decap", "edge", "labels"}, "edge": {"decap", "edge", "labels"}, "labels": {"decap", "edge", "labels"},
	"offload.bounces": {"offload.bounces", "dataplane.paths"}, "dataplane.paths": {"offload.bounces", "dataplane.paths"},
}

// An overview reads keys that the daemons write, with values of the same kind.
func TestOverview_readsWhatDaemonsWrite(t *testing.T) {
	for reads, writes := range map[reflect.Type]reflect.Type{
		reflect.TypeFor[overview.Host]():   reflect.TypeFor[daemon.Status](),
		reflect.TypeFor[overview.Switch](): reflect.TypeFor[switchd.Status](),
	} {
		want, got := make(map[string]reflect.Kind), make(map[string]reflect.Kind)
		jsonKeys(reads, "", want)
		jsonKeys(writes, "", got)
		for _, part := range []string{"offload", "steer", "order"} {
			got[part+".error"] = reflect.String // in place of what is not known
		}
		for _, key := range slices.Sorted(maps.Keys(want)) {
			at := strings.LastIndex(key, ".")
			parts, field := []string{key}, ""
			if u := unions[key[:max(at, 0)]]; u != nil {
				parts, field = u, key[at:]
			}
			if !slices.ContainsFunc(parts, func(part string) bool { kind, ok := got[part+field]; return ok && kind == want[key] }) {
				t.Errorf("%v reads %s as %v, which no status writes", reads, key, want[key])
			}
		}
	}
}

// One screen of what the daemons say, with all parts of it.
func TestStatus_oneScreen(t *testing.T) {
	s := daemon.Status{Version: 1, Mode: "offload", Encapsulation: "ipip", Policy: "drb", Unit: "packet", Address: "10.0.0.2", State: daemon.StateWorking, Process: 3,
		Offload:   hostprog.SprayStats{Bounces: []hostprog.BounceStats{{Addr: mustAddr("10.4.1.1"), Traffic: hostprog.Traffic{Packets: 5, Bytes: 500}}}},
		Dataplane: dataplane.GatewayStats{}, Failures: &daemon.FailureStatus{Down: []string{"a0.1-c1.1"},
			Paths: []daemon.PathStatus{{To: "h0.0.2", Via: "10.4.1.1", Bounce: "c1.1", State: "up", RTT50: 0.1, RTT99: 0.2}}}}
	s.Reach = &daemon.ReachStatus{Racks: 1000, Unnamed: 0}
	for i := range 1000 {
		s.Reach.InUse = append(s.Reach.InUse, daemon.RackPaths{Rack: fmt.Sprint("e", i), Paths: 4, Up: 4})
	}
	out := mustWeft(t, "status", "--socket", answering(t, s))
	for _, want := range []string{"host 10.0.0.2: DEGRADED, link a0.1-c1.1 out of use\n", "  do: look at the cable", "c1.1     up     100 %", "0.10 ms", "more racks in use, all well\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if n := strings.Count(out, "\n"); n >= usualRows {
		t.Errorf("%d lines, which is more than a screen:\n%s", n, out)
	}

	agent := switchd.Status{Switch: "a0.2", Topology: "fat-tree:k=4", Neighbours: []switchd.Neighbour{{Port: "p2", Name: "c1.1", State: "down", Why: "no carrier"}},
		Meters: []fabric.PortMeter{{Port: "p2", Length: 4500}}}
	socket := answering(t, agent)
	for _, args := range [][]string{{"status"}, {"switch", "status"}} {
		out := mustWeft(t, append(args, "--socket", socket)...)
		if !strings.HasPrefix(out, "switch a0.2: DEGRADED, port p2 to c1.1 is down") || !strings.Contains(out, "ip link show p2") {
			t.Errorf("%v:\n%s", args, out)
		}
	}
	if all := mustWeft(t, "status", "--all", "--socket", socket); !strings.Contains(all, "down: none; 0 changes") {
		t.Errorf("--all:\n%s", all)
	}
	wantError(t, "status --all --json --socket "+socket, "--all", "--json", "exclude each other")
}

// --ready is for scripts: the verdict, and a status that says whether packets take their paths.
func TestStatus_ready(t *testing.T) {
	working := daemon.Status{Address: "10.0.0.2", Encapsulation: "ipip", State: daemon.StateWorking, Reach: &daemon.ReachStatus{Racks: 7}}
	degraded, plain, away := working, working, working
	degraded.Trouble = "no memory"
	plain.Reach = &daemon.ReachStatus{Racks: 7, Plain: 7}
	away.State = daemon.StateAway
	for want, s := range map[string]any{"host 10.0.0.2: SPRAYED": working, "host 10.0.0.2: DEGRADED": degraded, "switch a0.2: WELL": switchd.Status{Switch: "a0.2"}} {
		if out := mustWeft(t, "status", "--ready", "--socket", answering(t, s)); !strings.HasPrefix(out, want) || strings.Count(out, "\n") != 1 {
			t.Errorf("%q, want a line of %q", out, want)
		}
	}
	for _, s := range []daemon.Status{plain, away} {
		wantError(t, "status --ready --socket "+answering(t, s), "not ready: host 10.0.0.2: PLAIN")
	}
	wantError(t, "status --ready --socket /nonexistent/status.sock", "/nonexistent/status.sock")
	wantError(t, "status --ready --json --socket x", "--ready", "exclude each other")
}

// --wait waits for a daemon that is not there yet, then for one that sends plain, and no longer
// than it says.
func TestStatus_wait(t *testing.T) {
	wantError(t, "status --wait 1s", "--wait=1s", "--ready")
	wantError(t, "status --ready --wait -1s", "--wait=-1s")
	wantError(t, "status --ready --wait 1ms --socket /nonexistent/status.sock", "/nonexistent/status.sock")
	socket := filepath.Join(t.TempDir(), "s")
	var asked atomic.Int32 // the daemon's side reads it
	f := statusFlags{ready: true, wait: time.Hour}
	status := func() any {
		state := daemon.StateAway
		if asked.Load() >= 5 {
			state = daemon.StateWorking
		}
		return daemon.Status{Address: "10.0.0.2", Encapsulation: "ipip", State: state, Reach: &daemon.ReachStatus{Racks: 7}}
	}
	var out bytes.Buffer
	err := f.run(t.Context(), &out, func(ctx context.Context) ([]byte, error) {
		if asked.Add(1) == 3 {
			l, err := service.ServeStatus(socket, nil, status, nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { l.Close() })
		}
		return askStatus(ctx, socket)
	})
	if err != nil || asked.Load() != 5 || !strings.HasPrefix(out.String(), "host 10.0.0.2: SPRAYED") {
		t.Errorf("asked %d times: %v, %q", asked.Load(), err, &out)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.run(ctx, &out, func(context.Context) ([]byte, error) { return nil, errors.New("nobody answers") }); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

// --watch prints one screen after the other, with what happened in between, until it is
// interrupted; with --json an object a line.
func TestStatus_watch(t *testing.T) {
	asked := 0
	ctx, cancel := context.WithCancel(t.Context())
	ask := func(context.Context) ([]byte, error) {
		asked++
		if asked == 3 {
			cancel()
		}
		return json.Marshal(switchd.Status{Switch: "a0.2", Signed: true, Decap: &fabric.Counters{Spoofed: uint64(asked)}})
	}
	var out bytes.Buffer
	if err := (&statusFlags{watch: true}).run(ctx, &out, ask); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "switch a0.2: "); n != 2 || !strings.Contains(out.String(), "1 packets dropped just now (spoofed 1)") {
		t.Errorf("%d screens, want 2 that show what is dropped:\n%s", n, &out)
	}
	if strings.Contains(out.String(), "\x1b") {
		t.Errorf("it is no terminal:\n%q", &out)
	}

	out.Reset()
	asked, ctx = 2, t.Context()
	ctx, cancel = context.WithCancel(ctx)
	if err := (&statusFlags{watch: true, json: true}).run(ctx, &out, func(c context.Context) ([]byte, error) {
		text, err := json.Marshal(switchd.Status{Switch: "a0.2"})
		time.AfterFunc(10*time.Millisecond, cancel)
		return text, err
	}); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "\n"); n != 1 || !json.Valid(out.Bytes()) {
		t.Errorf("%d lines: %s", n, &out)
	}
	nobody := errors.New("nobody answers")
	if err := (&statusFlags{watch: true}).run(t.Context(), &out, func(context.Context) ([]byte, error) { return nil, nobody }); err != nobody {
		t.Errorf("if nobody answers at first: %v", err)
	}
}
