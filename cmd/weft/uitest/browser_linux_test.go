package uitest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// browser is a page in headless Chromium.
type browser struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	troubles []string // exceptions, and what the policy refused
}

// openBrowser opens one that may be used for so long.
func openBrowser(t *testing.T, limit time.Duration) *browser {
	t.Helper()
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.DisableGPU)
	ctx, end := chromedp.NewExecAllocator(t.Context(), opts...)
	t.Cleanup(end)
	ctx, end = chromedp.NewContext(ctx)
	t.Cleanup(end)
	ctx, end = context.WithTimeout(ctx, limit)
	t.Cleanup(end)
	b := &browser{t: t, ctx: ctx}
	b.do(chromedp.Navigate("about:blank"))
	thrown, logged := chromedp.Events(ctx, runtime.ExceptionThrown), chromedp.Events(ctx, log.EntryAdded)
	go func() {
		for e, err := range thrown {
			if err != nil {
				return
			}
			b.trouble(fmt.Sprintf("exception: %+v", e.ExceptionDetails.Text))
		}
	}()
	go func() {
		for e, err := range logged {
			if err != nil {
				return
			}
			if e.Entry.Level == log.EntryLevelError {
				b.trouble("log: " + e.Entry.Text)
			}
		}
	}()
	return b
}

func (b *browser) trouble(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.troubles = append(b.troubles, text)
}

func (b *browser) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// look runs the page in a size and with colours.
func (b *browser) look(width, height int64, scheme string) {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(width, height), func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
		return chromedp.Void{}, err
	})
}

// js returns what an expression of the page is, as JSON says it.
func js[T any](b *browser, expression string) (v T) {
	b.t.Helper()
	text, err := chromedp.Run(b.ctx, chromedp.Evaluate[string]("JSON.stringify("+expression+") ?? 'null'"))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		b.t.Fatalf("%s: %s: %v", expression, text, err)
	}
	return v
}

// await waits until an expression of the page is true.
func (b *browser) await(what, expression string) {
	b.t.Helper()
	for end := time.Now().Add(60 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if js[bool](b, "Boolean("+expression+")") {
			return
		}
	}
	b.t.Fatalf("after a minute still not: %s (%s); the page says: %s", what, expression, js[string](b, "document.body.innerText"))
}

// click clicks where an element is, as a mouse does.
func (b *browser) click(selector string) {
	b.t.Helper()
	at := js[[2]float64](b, fmt.Sprintf(`(() => { const e = document.querySelector(%q); e.scrollIntoView({block: "nearest"});
		const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()`, selector))
	b.do(chromedp.MouseClickXY(at[0], at[1]))
}

func (b *browser) press(keys string) {
	b.t.Helper()
	b.do(chromedp.KeyEvent(keys))
}

// shoot keeps a picture of the whole page.
func (b *browser) shoot(name string) {
	b.t.Helper()
	png, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		b.t.Fatal(err)
	}
	if len(png) < 10_000 {
		b.t.Errorf("%s has %d bytes: there is nothing on it", name, len(png))
	}
	dir := os.Getenv("WEFT_ARTIFACTS")
	if dir == "" {
		dir = b.t.TempDir()
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644); err != nil {
		b.t.Fatal(err)
	}
}
