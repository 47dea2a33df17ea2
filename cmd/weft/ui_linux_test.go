package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weft/internal/daemon"
	"weft/internal/kernel/kerneltest"
	"weft/internal/live"
	"weft/internal/slowtest"
)

func TestUI_bad(t *testing.T) {
	wantError(t, "ui --lab --socket x", "--socket", "--lab")
	wantError(t, "ui --name x", "--lab")
	wantError(t, "ui --socket /nonexistent/weft.sock", "/nonexistent/weft.sock")
	wantError(t, "ui --lab --name nosuchlab", "nosuchlab")
}

// On a real weft host: weft ui and weft top show what it sends by each way and by its device, and
// its connections. From another network namespace they show its ways alone, and say so.
func TestUI_onHost(t *testing.T) {
	slowtest.System(t)
	b := newCaptureBed(t)
	page := filepath.Join(b.dir, "ui.sock")
	ui := b.at("h0.0.2", "ui", "--listen", page, "--interval", "100ms")
	out, err := ui.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	b.start(ui)
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || strings.TrimSpace(line) != page {
		t.Fatalf("it prints %q, %v", line, err)
	}
	client := http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", page) }}}
	get := func(path string, v any) {
		t.Helper()
		a, err := client.Get("http://localhost/api/" + path)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Body.Close()
		text, err := io.ReadAll(a.Body)
		if err != nil || a.StatusCode == http.StatusOK && json.Unmarshal(text, v) != nil {
			t.Fatalf("%s: %v, %s", path, err, text)
		}
	}
	await := func(what string, so func(*live.Frame) bool) {
		t.Helper()
		var f live.Frame
		for end := time.Now().Add(kerneltest.Patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
			f = live.Frame{}
			if get("frame", &f); so(&f) {
				return
			}
		}
		t.Fatalf("not in time: %s: %+v, %+v, %q", what, f.Total, f.Ways, f.Trouble)
	}
	await("a frame", func(f *live.Frame) bool { return f.Seq > 0 })
	var fabric live.Fabric
	get("fabric", &fabric)
	if fabric.Kind != live.KindHost || len(fabric.Links) != 48 || strings.Contains(fabric.About, "up ") {
		t.Errorf("%s %s: %d links", fabric.Kind, fabric.About, len(fabric.Links))
	}
	own := fabric.FindLink("h0.0.2-e0.0")
	await("it sends by four ways and its device", func(f *live.Frame) bool {
		b.send("1009", 1_000_000)
		ways := 0
		for _, w := range f.Ways {
			if w.Rate > 0 && strings.HasPrefix(w.Bounce, "c") {
				ways++
			}
		}
		return ways == 4 && own >= 0 && own < len(f.Links) && f.Links[own].Up.Rate > 0 && f.Links[own].Down.Rate > 0 && f.Trouble == ""
	})
	var here, elsewhere pictureJSON
	ask := func(to *pictureJSON, args ...string) {
		t.Helper()
		cmd := program(t, args...)
		if args[0] != "top" {
			cmd = b.at("h0.0.2", args[1:]...)
		}
		var text strings.Builder
		cmd.Stdout = &text
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		for {
			select {
			case err := <-ended:
				if err != nil || json.Unmarshal([]byte(text.String()), to) != nil {
					t.Fatalf("%v: %v: %s", args, err, text.String())
				}
				return
			default:
				b.send("1009", 100_000)
			}
		}
	}
	ask(&here, "there", "top", "--json")
	if here.Frame.Total.Delivered == 0 || len(here.Frame.Hosts) != 1 || here.Frame.Trouble != "" {
		t.Errorf("top: %+v", here.Frame)
	}
	var socket string
	n, err := b.lab.Lookup("h0.0.2")
	if err == nil {
		err = b.lab.Do(n.ID, func() (err error) { socket, err = daemon.StatusSocket(); return err })
	}
	if err != nil {
		t.Fatal(err)
	}
	ask(&elsewhere, "top", "--json", "--socket", socket)
	if f := elsewhere.Frame; !strings.Contains(f.Trouble, "network namespace") || len(f.Conns) > 0 || f.Links[own].Down.Rate > 0 || len(f.Ways) == 0 {
		t.Errorf("top from elsewhere: %+v", f)
	}
}
