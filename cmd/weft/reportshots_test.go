package main

import (
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"weft/internal/slowtest"
)

// chromium finds one, or skips.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("needs chromium")
	return ""
}

// framed is a page in a frame of a width: a window is no narrower than 500. It says how wide the
// page wants to be.
func framed(t *testing.T, file string, width, height int) string {
	t.Helper()
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "framed.html")
	text := fmt.Sprintf(`<!DOCTYPE html><meta charset="utf-8"><style>body{margin:0}</style><iframe style="border:0;display:block" width="%d" height="%d" srcdoc="%s" onload="document.title='wants '+this.contentDocument.documentElement.scrollWidth+' of '+this.clientWidth"></iframe>`,
		width, height, html.EscapeString(string(page)))
	if err := os.WriteFile(out, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return out
}

// The pages of the demo and of simulations fit desktops and phones: nothing makes the page wider
// than the window. With WEFT_ARTIFACTS, screenshots in light and dark go there.
func TestReports_fitScreens(t *testing.T) {
	slowtest.System(t)
	browser := chromium(t)
	dir := t.TempDir()
	pages := map[string]string{"demo": filepath.Join(dir, "demo.html"), "sim": filepath.Join(dir, "sim.html"), "simfile": filepath.Join(dir, "simfile.html")}
	mustWeft(t, "demo", "--fabric", "memory", "--policies", "ecmp,rb,rrb,drb,presto", "--warmup", "500ms", "--duration", "1s", "--report", pages["demo"])
	mustWeft(t, "sim", "run", "drb-appendix-b", "--quick", "--report", pages["sim"])
	mustWeft(t, "sim", "run", "../../examples/sim/graph.yaml", "--report", pages["simfile"])
	run := func(args ...string) string {
		t.Helper()
		c := exec.CommandContext(t.Context(), browser, append([]string{"--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--user-data-dir=" + t.TempDir()}, args...)...)
		c.WaitDelay = 5 * time.Second
		out, err := c.Output()
		if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		return string(out)
	}
	for name, file := range pages {
		for _, width := range []int{1280, 390} {
			url := "file://" + framed(t, file, width, 6000)
			dom := run("--dump-dom", url)
			m := regexp.MustCompile(`<title>wants (\d+) of (\d+)`).FindStringSubmatch(dom)
			if m == nil {
				t.Fatalf("%s, %d: the page did not load: %.300s", name, width, dom)
			}
			wants, _ := strconv.Atoi(m[1])
			if wants > width {
				t.Errorf("%s is %d wide on a screen of %d", name, wants, width)
			}
			to := os.Getenv("WEFT_ARTIFACTS")
			if to == "" {
				continue
			}
			for theme, scheme := range map[string]string{"dark": "0", "light": "1"} {
				shot := filepath.Join(to, fmt.Sprintf("%s-%d-%s.png", name, width, theme))
				run("--blink-settings=preferredColorScheme="+scheme, fmt.Sprintf("--window-size=%d,3200", max(width, 500)), "--screenshot="+shot, url)
			}
		}
	}
}
