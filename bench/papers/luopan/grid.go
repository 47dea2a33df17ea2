package luopan

import (
	"context"
	"fmt"
	"slices"

	"weft/bench/papers"
)

// grid is runs of several schemes at several points of a figure's x axis.
type grid struct {
	axis    string
	x       []float64
	schemes []string
	all     []*times // by point, then scheme
}

// run fills a grid with a trial of every point and scheme.
func (g *grid) run(ctx context.Context, o papers.Options, make func(x float64, scheme string) trial) (err error) {
	var trials []trial
	for _, v := range g.x {
		for _, s := range g.schemes {
			trials = append(trials, make(v, s))
		}
	}
	g.all, err = play(ctx, o, trials, nil)
	return err
}

func (g *grid) at(point int, scheme string) *times {
	return g.all[point*len(g.schemes)+slices.Index(g.schemes, scheme)]
}

// changes is luopan's difference to another scheme at every point, in percent.
func (g *grid) changes(m measure, scheme string) []float64 {
	var l []float64
	for i := range g.x {
		l = append(l, m.change(g.at(i, luopanScheme), g.at(i, scheme)))
	}
	return l
}

// published has a row per point of how luopan by samples alone differs from weft's.
func (g *grid) published(m measure) []papers.Row {
	var rows []papers.Row
	for i, x := range g.x {
		rows = append(rows, papers.Info(fmt.Sprintf("%s vs luopan, %s %v", published, g.axis, x), "change of "+m.name+", %", m.change(g.at(i, published), g.at(i, luopanScheme))))
	}
	return rows
}

// timeless has a row per point of how luopan would differ from a scheme if its
// samples took no time.
func (g *grid) timeless(m measure, scheme string) []papers.Row {
	var rows []papers.Row
	for i, x := range g.x {
		rows = append(rows, papers.Info(fmt.Sprintf("%s vs %s, %s %v", timeless, scheme, g.axis, x), "change of "+m.name+", %", m.change(g.at(i, timeless), g.at(i, scheme))))
	}
	return rows
}

// timelessToo describes the scheme.
var timelessToo = chosen(timeless, "besides, not in the paper: samples take no time and no capacity; the rack's switch chooses, behind the host's own queue; 2 samples, expiry 40 µs, samples alone; acknowledgements are flowcells, too", "in the paper probes travel, as luopan's do here; the difference is what the age of samples costs")

// maker is of a row of a change in percent.
type maker func(label, metric string, change float64) papers.Row

func within(b bounds) maker {
	return func(label, metric string, change float64) papers.Row { return between(label, metric, b, change) }
}

// rows has a row per point.
func (g *grid) rows(m measure, scheme string, of maker) []papers.Row {
	var rows []papers.Row
	for i, c := range g.changes(m, scheme) {
		rows = append(rows, of(fmt.Sprintf("luopan vs %s, %s %v", scheme, g.axis, g.x[i]), "change of "+m.name+", %", c))
	}
	return rows
}

// upTo has one row, of the point where luopan gains most.
func (g *grid) upTo(m measure, scheme string, paper float64) papers.Row {
	return upTo("luopan vs "+scheme, "change of "+m.name+", %", paper, g.changes(m, scheme))
}

// better states that luopan's is the lesser by more than a tie, in the mean of all points.
// At each of them it need not be: where next to nothing is sent there is nothing to gain.
func (g *grid) better(m measure, scheme string) papers.Row {
	return papers.Sign(fmt.Sprintf("%s: luopan below %s, mean of the changes over %s", m.name, scheme, g.axis), mean(g.changes(m, scheme)) < -papers.Tie)
}

// everywhere states at each point that luopan's is the lesser by more than a tie, where the paper
// says so of all of them.
func (g *grid) everywhere(m measure, scheme string) (rows []papers.Row) {
	for i, c := range g.changes(m, scheme) {
		rows = append(rows, papers.Sign(fmt.Sprintf("%s: luopan below %s, %s %v", m.name, scheme, g.axis, g.x[i]), c < -papers.Tie))
	}
	return rows
}

// own makes rows our own: of another percentile than the paper's.
func own(rows []papers.Row) []papers.Row {
	for i := range rows {
		rows[i] = rows[i].Own()
	}
	return rows
}

// charts draw measures of all schemes.
func (g *grid) charts(measures ...measure) []papers.Chart {
	var charts []papers.Chart
	for _, m := range measures {
		c := papers.Chart{Title: m.name, X: g.axis, Y: "µs"}
		for _, s := range g.schemes {
			line := papers.Line{Name: s, X: g.x}
			for i := range g.x {
				line.Y = append(line.Y, m.of(g.at(i, s)))
			}
			c.Lines = append(c.Lines, line)
		}
		charts = append(charts, c)
	}
	return charts
}

// pick is what a run takes.
func pick[T any](o papers.Options, full, quick T) T {
	if o.Quick {
		return quick
	}
	return full
}
