package report

import (
	"cmp"
	"fmt"
	"slices"

	"weft/topology"
)

// fabric is the picture of one policy's run.
type fabric struct {
	Series        series
	Policy, Label string
	Goodput       string
	Pods          []pod
	Lines         []line
	Nodes         []glyph
	Shares        []segment
}

// line is a link.
type line struct {
	X1, Y1, X2, Y2 float64
	Width          float64
	Class, Title   string
	use            float64
}

// glyph is a node: a box about (X, Y), with its name on it if that fits.
type glyph struct {
	X, Y, Width, Height float64
	Class, Title, Label string
	Small               bool // the label needs a smaller font
}

// Left and Top are the box's corner.
func (g glyph) Left() float64 { return g.X - g.Width/2 }
func (g glyph) Top() float64  { return g.Y - g.Height/2 }

// segment is a path's share in the bar of all paths.
type segment struct {
	X, Width    float64
	Class       string
	Name, Value string // empty where they do not fit
	Title       string
}

// Middle is where the segment's label is centred.
func (s segment) Middle() float64 { return s.X + s.Width/2 }

// scaleStep is one colour of the utilisation scale.
type scaleStep struct {
	Class, Label string
	Width        float64
}

// useSteps is the number of colours above that of the idle.
const useSteps = 5

// useClass returns the class for a utilisation: u0 below 1 %, then a class per
// fifth.
func useClass(use float64) string {
	if use < 0.01 {
		return "u0"
	}
	return fmt.Sprintf("u%d", 1+int(min(use*useSteps, useSteps-1)))
}

func useWidth(use float64) float64 { return 1 + 5*min(max(use, 0), 1) }

func scale() []scaleStep {
	s := []scaleStep{{useClass(0), "idle", useWidth(0)}}
	for i := range useSteps {
		use := (float64(i) + 0.5) / useSteps
		s = append(s, scaleStep{useClass(use),
			fmt.Sprintf("%d–%d%s%%", i*100/useSteps, (i+1)*100/useSteps, narrowSpace), useWidth(use)})
	}
	return s
}

func newFabric(l layout, t *topology.Topology, s series, r Row) fabric {
	f := fabric{
		Series: s, Policy: r.Policy, Label: r.Label, Goodput: percent(r.PercentOfIdeal),
		Shares: segments(r.SharePerPath),
	}
	if len(r.Links) != t.NumLinks() {
		return f
	}
	f.Pods = l.boxes
	for link := range t.Links() {
		f.Lines = append(f.Lines, newLine(l, t, link, r.Links[link.ID]))
	}
	// The busiest on top, or they would be hidden where links cross.
	slices.SortStableFunc(f.Lines, func(a, b line) int { return cmp.Compare(a.use, b.use) })
	perLayer := make(map[topology.Layer]int)
	for n := range t.Nodes() {
		perLayer[n.Layer]++
	}
	for n := range t.Nodes() {
		f.Nodes = append(f.Nodes, newGlyph(l, n, fabricWidth/float64(perLayer[n.Layer])))
	}
	return f
}

func newLine(l layout, t *topology.Topology, link topology.Link, use LinkUse) line {
	a, b := t.Node(link.A), t.Node(link.B)
	busier := max(use.Up, use.Down)
	state := ""
	if !t.Live(link.ID) {
		state = " (down)"
	}
	return line{
		X1: l.x[a.ID], Y1: layerY[a.Layer], X2: l.x[b.ID], Y2: layerY[b.Layer],
		Width: useWidth(busier) * l.stroke, Class: useClass(busier), use: busier,
		Title: fmt.Sprintf("%s – %s%s: up %s, down %s", a.Name, b.Name, state, percent(use.Up*100), percent(use.Down*100)),
	}
}

// newGlyph makes a node's box; room is the space from one to the next.
func newGlyph(l layout, n topology.Node, room float64) glyph {
	g := glyph{X: l.x[n.ID], Y: layerY[n.Layer], Height: 18, Class: "switch", Label: n.Name,
		Title: fmt.Sprintf("%s %v, %v", n.Name, n.Addr, n.Layer)}
	if n.Layer == topology.LayerHost {
		g.Class, room = "host", l.slot
	}
	const roomy, tight = 46, 24
	switch {
	case room >= roomy:
		g.Width = 42
	case room >= tight:
		g.Width, g.Small = 23, true
		if n.Layer == topology.LayerHost {
			g.Label = "" // longer than a switch's
		}
	default:
		g.Label = ""
		g.Width = min(max(room*0.6, 2), 18)
		g.Height = min(g.Height, g.Width)
	}
	return g
}

// segments lays the paths' shares side by side over the picture's width.
func segments(shares []Share) (all []segment) {
	total := 0.0
	for _, s := range shares {
		total += max(s.Fraction, 0)
	}
	if total == 0 {
		return nil
	}
	x := 0.0
	for i, s := range shares {
		width := max(s.Fraction, 0) / total * fabricWidth
		seg := segment{X: x, Width: width, Class: []string{"even", "odd"}[i%2]}
		value := percent(s.Fraction * 100)
		seg.Title = s.Path + ": " + value
		if width > 9*float64(len([]rune(s.Path))+len([]rune(value))) {
			seg.Name, seg.Value = s.Path, value
		} else if width > 8*float64(len([]rune(s.Path))) {
			seg.Name = s.Path
		}
		all = append(all, seg)
		x += width
	}
	return all
}
