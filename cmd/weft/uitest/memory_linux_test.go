package uitest

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"
)

// How long the page is open, and how often its memory is read. The server and the page keep
// the last ten minutes, so that what grows later is a leak.
const (
	watched  = 35 * time.Minute
	readEach = 5 * time.Minute
	filled   = 15 * time.Minute // from then on nothing may grow
)

// reading is what the server and the page hold at a time, in bytes.
type reading struct {
	at            time.Duration
	rss, heap     float64 // of the server: resident, and what a collection of garbage has left
	js            float64 // of the page, after a collection of garbage
	nodes         float64 // of the document
	listeners     float64 // of events
	frames, spans int     // that the server keeps, and that the page has
}

func (r reading) String() string {
	const mb = 1e6
	return fmt.Sprintf("%5.1f min: server %.1f MB resident, %.0f MB of heap; page %.2f MB of JavaScript, %.0f nodes, %.0f listeners; frames kept %d, in the page %d",
		r.at.Minutes(), r.rss/mb, r.heap/mb, r.js/mb, r.nodes, r.listeners, r.frames, r.spans)
}

// A page that is open for long holds no more than one that is open for a quarter of an hour, nor
// does the server: both keep ten minutes. WEFT_TESTS=long.
func TestUI_memory(t *testing.T) {
	if os.Getenv("WEFT_TESTS") != "long" {
		t.Skip("watches for half an hour: WEFT_TESTS=long runs it")
	}
	need(t)
	lab := newBench(t)
	lab.transfer("-b", "500k", "-t", "36000")
	server := lab.serveCounted()
	b := openBrowser(t, 2*watched)
	b.look(1440, 900, "light")
	b.do(chromedp.Navigate(lab.url), chromedp.WaitVisible(chromedp.CSS("#fabric svg")))
	b.await("it shows the connection", `document.querySelector("#conns [data-conn]")`)
	b.click("#conns tr:last-child [data-conn]") // its details and paths are drawn, too
	if _, err := chromedp.Call(b.ctx, performance.Enable, performance.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	var all []reading
	for next := 30 * time.Second; next <= watched; next = max(readEach, next+readEach) - next%readEach {
		b.do(chromedp.Sleep(time.Until(start.Add(next))))
		r := server.read(t)
		r.at = time.Since(start)
		b.hold(&r)
		lab.kept(&r)
		t.Log(r)
		all = append(all, r)
	}
	var base *reading
	for i := range all {
		r := &all[i]
		switch {
		case r.at < filled:
			continue
		case base == nil:
			base = r
			continue
		}
		for _, c := range []struct {
			what      string
			was, is   float64
			most, add float64 // what may be, as part of what was, and besides
		}{
			{"resident memory of the server", base.rss, r.rss, 1.25, 8e6},
			{"heap of the server", base.heap, r.heap, 1.25, 4e6},
			{"JavaScript of the page", base.js, r.js, 1.25, 1e6},
			{"nodes of the document", base.nodes, r.nodes, 1.25, 200},
			{"listeners of the page", base.listeners, r.listeners, 1, 10},
			{"frames of the server", float64(base.frames), float64(r.frames), 1.1, 0},
			{"frames of the page", float64(base.spans), float64(r.spans), 1.1, 0},
		} {
			if c.is > c.was*c.most+c.add {
				t.Errorf("%s: %.0f after %v, %.0f after %v", c.what, c.was, base.at.Round(time.Second), c.is, r.at.Round(time.Second))
			}
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, trouble := range b.troubles {
		t.Error(trouble)
	}
}

// hold reads what the page holds.
func (b *browser) hold(r *reading) {
	b.t.Helper()
	for range 2 { // what the first one finalises goes with the second one
		b.do(func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
			_, err := chromedp.Call(ctx, heapprofiler.CollectGarbage, cdp.Empty{})
			return chromedp.Void{}, err
		})
	}
	got, err := chromedp.Call(b.ctx, performance.GetMetrics, cdp.Empty{})
	if err != nil {
		b.t.Fatal(err)
	}
	for _, m := range got.Metrics {
		switch m.Name {
		case "JSHeapUsedSize":
			r.js = m.Value
		case "Nodes":
			r.nodes = m.Value
		case "JSEventListeners":
			r.listeners = m.Value
		}
	}
	r.spans = js[int](b, `Number(document.querySelector("#slider").max) + 1`)
}
