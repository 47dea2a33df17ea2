package uitest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// The host h0.0.2 has these two links up from its switch.
const broken, other = "e0.0-a0.2", "e0.0-a0.3"

const tenth = 100 * time.Millisecond

// A click in the picture takes a link of a lab down, the transfers move to the other one, and the
// page shows it; every figure is what the JSON says; all can be done by keyboard; and it looks
// as it should on a desk and on a phone, by day and by night.
func TestUI(t *testing.T) {
	need(t)
	lab := newBench(t)
	lab.transfer("-t", "600")
	lab.serve()
	b := openBrowser(t, 5*time.Minute)
	b.look(1440, 900, "light")
	b.do(chromedp.Navigate(lab.url), chromedp.WaitVisible(chromedp.CSS("#fabric svg")))
	if hash := js[string](b, "location.href"); strings.Contains(hash, "key") {
		t.Errorf("the key stays in the address: %s", hash)
	}
	links := linkNumbers(t, lab)
	title := func(name string) string {
		return js[string](b, fmt.Sprintf(`document.querySelector('[data-link="%d"] title').textContent`, links[name]))
	}
	rate := regexp.MustCompile(`Mbit/s`)
	carries := func(name string) bool { return rate.MatchString(titleRate(title(name), "up")) }
	awaitTitle := func(what string, ok func() bool) {
		t.Helper()
		for range 600 {
			if ok() {
				return
			}
			b.do(chromedp.Sleep(tenth))
		}
		t.Fatalf("after a minute still not: %s: %s; %s", what, title(broken), title(other))
	}
	awaitTitle("both links carry the transfer", func() bool { return carries(broken) && carries(other) })

	t.Run("click", func(t *testing.T) {
		b.click("#breaking")
		b.click(fmt.Sprintf(`[data-link="%d"] .hit`, links[broken]))
		awaitTitle("the link is down", func() bool { return strings.HasPrefix(title(broken), broken+" down") })
		if status := lab.run("lab", "status", "--name", lab.name); !strings.Contains(status, broken+" FAILED") {
			t.Errorf("the lab says\n%s", status)
		}
		awaitTitle("the other link carries it all", func() bool { return carries(other) && titleRate(title(broken), "up") == "0" })
		b.await("the event is told", `document.querySelector("#events").textContent.includes("`+broken+` is down")`)
		b.click("#breaking")
	})
	t.Run("figures", func(t *testing.T) { figures(t, lab, b, links) })
	t.Run("looks", func(t *testing.T) { looks(t, b, "ui") })
	t.Run("keyboard", func(t *testing.T) { keyboard(t, lab, b) })
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, trouble := range b.troubles {
		t.Error(trouble)
	}
}

// linkNumbers are the places of links in the picture, by their names.
func linkNumbers(t *testing.T, lab *bench) map[string]int {
	var fabric struct{ Links []struct{ Name string } }
	if err := json.Unmarshal(lab.get("api/fabric"), &fabric); err != nil {
		t.Fatal(err)
	}
	at := make(map[string]int)
	for i, l := range fabric.Links {
		at[l.Name] = i
	}
	return at
}

// figures compares all that is written with the JSON of the frame that is shown, with each kind
// of thing selected.
func figures(t *testing.T, lab *bench, b *browser, links map[string]int) {
	for _, what := range []struct {
		name, selector string
		least          int
	}{
		{"nothing", "", 6},
		{"link", fmt.Sprintf(`[data-link="%d"] .hit`, links[other]), 14},
		{"node", `[data-node="0"] rect`, 14},
		{"connection", `#conns tr:last-child [data-conn]`, 14},
	} {
		figuresWith(t, lab, b, what.name, what.selector, what.least)
	}
	if marked := js[int](b, `document.querySelectorAll(".link.on").length`); marked < 8 {
		t.Errorf("%d links are marked as the connection's, want those of 4 paths", marked)
	}
}

// figuresWith compares them, so many at least, with one thing selected by a click, or none.
func figuresWith(t *testing.T, lab *bench, b *browser, what, selector string, least int) {
	b.press(kb.Escape)
	if selector != "" {
		b.click(selector)
		b.await(what+" is selected", `!document.querySelector("#detail").hidden && document.querySelector("#detail [data-figure]")`)
	}
	b.click("#live")
	b.await("it pauses", `document.body.classList.contains("past")`)
	b.await("the paths are there", `document.querySelector("#live").textContent === "Go live"`)
	b.do(chromedp.Sleep(5 * tenth)) // a frame that came meanwhile is not shown
	seq := js[string](b, "document.body.dataset.seq")
	shown := js[[]figure](b, `[...document.querySelectorAll("[data-figure]")].map((e) => ({Place: e.dataset.figure, Kind: e.dataset.kind, Text: e.textContent}))`)
	wrong, err := compare(lab.get("api/frame/"+seq), shown)
	if err != nil {
		t.Fatal(err)
	}
	if len(shown) < least {
		t.Errorf("%s: only %d figures", what, len(shown))
	}
	t.Logf("%s: %d figures of frame %s", what, len(shown), seq)
	for _, w := range wrong {
		t.Errorf("%s: %s", what, w)
	}
	b.click("#live")
	b.await("it goes on", `!document.body.classList.contains("past")`)
}

// looks keeps pictures under failure. Nothing may be wider than the screen.
func looks(t *testing.T, b *browser, name string) {
	for _, size := range []struct {
		name          string
		width, height int64
	}{{"desk", 1440, 900}, {"phone", 390, 844}} {
		for _, scheme := range []string{"light", "dark"} {
			b.look(size.width, size.height, scheme)
			b.do(chromedp.Sleep(8 * tenth)) // drawn anew, and colours have changed
			if w := js[int64](b, "document.documentElement.scrollWidth"); w > size.width {
				t.Errorf("%s is %d wide, the screen %d", size.name, w, size.width)
			}
			page := js[string](b, "getComputedStyle(document.body).backgroundColor")
			if dark := page == "rgb(14, 17, 20)"; dark != (scheme == "dark") {
				t.Errorf("%s %s has the colour %s", size.name, scheme, page)
			}
			b.shoot(name + "-" + size.name + "-" + scheme)
		}
	}
	b.look(1440, 900, "light")
}

// keyboard goes through the page by the Tab key, moves in the picture by arrows, selects, heals,
// and goes back in time.
func keyboard(t *testing.T, lab *bench, b *browser) {
	b.press(kb.Escape)
	b.do(chromedp.Navigate(strings.Split(lab.url, "#")[0]), chromedp.WaitVisible(chromedp.CSS("#fabric svg")))
	b.await("it is live", `document.querySelector("#status").textContent === "live" && document.querySelector("[data-conn]") && document.querySelector("#events button")`)
	where := `(() => { const e = document.activeElement; const r = e.getBoundingClientRect(); const s = getComputedStyle(e);
		return {Name: e.id || (e.dataset.node !== undefined ? "node" : e.dataset.link !== undefined ? "link" : e.dataset.conn ? "conn" : e.closest("#events") ? "event" : e.className || e.tagName),
			Shown: r.width > 0 && r.height > 0, Marked: e.closest("svg") !== null || s.outlineStyle !== "none"}; })()`
	seen := make(map[string]bool)
	for range 60 {
		b.press(kb.Tab)
		at := js[struct {
			Name          string
			Shown, Marked bool
		}](b, where)
		seen[at.Name] = true
		if at.Name != "BODY" && (!at.Shown || !at.Marked) {
			t.Errorf("the focus is on %s, shown %t, marked %t", at.Name, at.Shown, at.Marked)
		}
	}
	for _, stop := range []string{"skip", "theme", "breaking", "mode", "healall", "node", "live", "slider", "conn", "event"} {
		if !seen[stop] {
			t.Errorf("the Tab key does not come to %s, but to %v", stop, seen)
		}
	}
	js[any](b, `document.querySelector('#fabric [tabindex="0"]').focus()`)
	b.press(kb.ArrowLeft)
	b.press(kb.ArrowDown) // from the cores to the links below them
	b.press(kb.ArrowRight)
	name := js[string](b, `document.activeElement.getAttribute("aria-label")`)
	if !regexp.MustCompile(`^a\d\.\d-c\d\.\d up; up .*; down `).MatchString(name) {
		t.Errorf("the second link below the cores is called %q", name)
	}
	b.press(kb.Enter)
	b.await("the link is selected", `document.querySelector("#detail h2").textContent.includes("link")`)
	// To the link that is down, by arrows, and heal it.
	for range 2 {
		b.press(kb.ArrowDown)
	}
	b.press(kb.Home) // Home
	for range 40 {
		if strings.HasPrefix(js[string](b, `document.activeElement.getAttribute("aria-label")`), broken) {
			break
		}
		b.press(kb.ArrowRight)
	}
	b.press("f")
	b.await("it is up again", fmt.Sprintf(`document.activeElement.getAttribute("aria-label").startsWith("%s up")`, broken))
	if status := lab.run("lab", "status", "--name", lab.name); !strings.Contains(status, "nothing has been made to fail") {
		t.Errorf("the lab says\n%s", status)
	}
	js[any](b, `document.querySelector("#slider").focus()`)
	for range 3 {
		b.press(kb.ArrowLeft)
	}
	b.await("it shows the past", `document.body.classList.contains("past") && document.querySelector("#when").textContent.includes("ago")`)
	js[any](b, `document.querySelector("#live").focus()`)
	b.press(kb.Enter)
	b.await("it is live again", `!document.body.classList.contains("past")`)
}
