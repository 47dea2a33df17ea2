package daemon

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A signal comes before events that are ready, too: these may be ready all the time, and
// each may take seconds.
func TestServe_signalsComeFirst(t *testing.T) {
	for try := range 30 {
		w := newWorld(t, uint64(try))
		w.d.file = filepath.Join(t.TempDir(), "host.yaml")
		if err := os.WriteFile(w.d.file, []byte(inGateway(worldConfigs[1])), 0o600); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		w.d.loop.Log, w.d.loop.Summary, w.d.loop.Alive = w.d.log, w.d.summary, func() bool { return true }
		looks := -1
		w.d.loop.Reload = func() (string, error) {
			defer cancel()
			looks = w.looks
			return w.d.reload(ctx)
		}
		signals, changed := make(chan os.Signal, 1), make(chan struct{})
		signals <- syscall.SIGHUP
		close(changed) // the kernel changes all the time
		if err := w.d.serve(ctx, signals, changed); err != nil {
			t.Fatal(err)
		}
		if looks != 0 || w.d.reloads != 1 {
			t.Fatalf("try %d: %d reloads, the first after the kernel was compared %d times; want at once", try, w.d.reloads, looks)
		}
	}
}

// A try to come back may wait for the gateway for seconds. The next one does not follow at
// once: then nothing else would be done meanwhile, and no signal be taken.
func TestReconcile_restsAfterALongTry(t *testing.T) {
	w := newWorld(t, 1)
	w.d.takeAway("for this test")
	w.mute = 50 * time.Millisecond
	w.d.reconcile(t.Context(), w.now)
	if rest := w.d.trouble.retry.Sub(w.now); rest < retryAfter+w.mute {
		t.Errorf("the next try is %v after the begin of one that took %v, want %v after its end", rest, w.mute, retryAfter)
	}
	w.mute = 0
	w.tick()
	if !w.d.working {
		t.Errorf("does not come back:\n%s", w.log.String())
	}
}

// While the gateway does not answer, a reload that needs it is refused before anything is
// changed: waiting in each of its parts, and again on the way back, took longer than
// systemd's watchdog has patience.
func TestReload_gatewayDoesNotAnswer(t *testing.T) {
	for _, text := range worldConfigs[1:] {
		w := newWorld(t, 1)
		program, follower := w.program, w.followers[0]
		w.mute = time.Millisecond
		err := w.d.change(t.Context(), parsed(t, text))
		if err == nil || !strings.Contains(err.Error(), "gateway does not answer") {
			t.Errorf("%q: %v", text, err)
		}
		if w.program != program || len(w.followers) != 1 || w.followers[0] != follower || w.d.reloads != 0 {
			t.Errorf("%q: something was changed", text)
		}
		if what := w.wrong(w.d); what != "" {
			t.Errorf("%q: %s", text, what)
		}
	}
}
