package uitest

import (
	"encoding/json"
	"os/exec"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// A fabric of 3,456 hosts is drawn in bundles that can be read, on a desk and on a phone. Every
// figure is what the JSON says, and what is broken in a bundle is seen.
func TestUI_large(t *testing.T) {
	needBrowser(t)
	lab := &bench{t: t}
	lab.url = lab.awaitLine(lab.startCommand(exec.Command(build(t, "./internal/tools/picture"), "--topology", "fat-tree:k=24", "--listen", "127.0.0.1:0")), "http://")
	b := openBrowser(t, 5*time.Minute)
	b.look(1440, 900, "light")
	b.do(chromedp.Navigate(lab.url), chromedp.WaitVisible(chromedp.CSS("#fabric svg")))
	b.await("there are two frames", `document.querySelector("#totals").textContent.includes("bit/s")`)
	var fabric struct {
		Nodes []struct{ Members int }
		Links []struct{ Members int }
	}
	if err := json.Unmarshal(lab.get("api/fabric"), &fabric); err != nil {
		t.Fatal(err)
	}
	nodes, cables := 0, 0
	for _, n := range fabric.Nodes {
		nodes += n.Members
	}
	for _, l := range fabric.Links {
		cables += l.Members
	}
	if nodes != 3456+720 || cables != 10368 {
		t.Errorf("the bundles have %d nodes and %d cables, want 4176 and 10368", nodes, cables)
	}
	if drawn := js[int](b, `document.querySelectorAll("[data-link]").length`); drawn != len(fabric.Links) || drawn > 400 {
		t.Errorf("%d links are drawn of %d bundles", drawn, len(fabric.Links))
	}
	// Of the one link that is down, and of the silent one, a bundle each says so.
	b.await("two bundles are in doubt", `document.querySelectorAll("#fabric .doubt").length === 2`)
	b.await("drops are marked", `document.querySelectorAll("#fabric .drop").length >= 1`)
	figuresWith(t, lab, b, "nothing", "", 6)
	figuresWith(t, lab, b, "link", `[data-link="0"] .hit`, 14)
	figuresWith(t, lab, b, "node", `[data-node="0"] rect`, 8)
	looks(t, b, "ui-k24")
	b.click(`[data-link="0"] .hit`)
	b.await("its links are listed", `document.querySelectorAll("#detail li").length === 20`)
	b.look(390, 844, "light")
	b.do(chromedp.Sleep(8 * tenth))
	b.shoot("ui-k24-bundle-phone")
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, trouble := range b.troubles {
		t.Error(trouble)
	}
}
