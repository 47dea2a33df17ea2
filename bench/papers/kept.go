package papers

import (
	"encoding/json"
	"math"
	"strconv"
)

// MarshalJSON writes all of an outcome that reports need, the rules of rows included, so
// that another machine can judge it.
func (o *Outcome) MarshalJSON() ([]byte, error) {
	k := keptOutcome{Because: o.Because, PacketHops: o.PacketHops}
	for _, r := range o.Rows {
		k.Rows = append(k.Rows, keptRow{r, r.rule})
	}
	for _, p := range o.Settings {
		k.Settings = append(k.Settings, keptParameter{p, p.Chosen})
	}
	for _, c := range o.Charts {
		kept := keptChart{Title: c.Title, X: c.X, Y: c.Y, LogX: c.LogX, LogY: c.LogY}
		for _, l := range c.Lines {
			line := keptLine{Name: l.Name, X: numbers(l.X), Y: numbers(l.Y)}
			for _, p := range l.Paper {
				line.PaperX, line.PaperY = append(line.PaperX, p.X), append(line.PaperY, p.Y)
			}
			kept.Lines = append(kept.Lines, line)
		}
		for _, b := range c.Bars {
			bar := keptBar{Name: b.Name, Ours: numbers{b.Ours}}
			if b.Paper != nil {
				bar.Paper = numbers{*b.Paper}
			}
			kept.Bars = append(kept.Bars, bar)
		}
		k.Charts = append(k.Charts, kept)
	}
	return json.Marshal(k)
}

// UnmarshalJSON reads what MarshalJSON has written.
func (o *Outcome) UnmarshalJSON(b []byte) error {
	var k keptOutcome
	if err := json.Unmarshal(b, &k); err != nil {
		return err
	}
	*o = Outcome{Because: k.Because, PacketHops: k.PacketHops}
	for _, r := range k.Rows {
		r.Row.rule = r.Rule
		o.Rows = append(o.Rows, r.Row)
	}
	for _, p := range k.Settings {
		p.Parameter.Chosen = p.Chosen
		o.Settings = append(o.Settings, p.Parameter)
	}
	for _, c := range k.Charts {
		chart := Chart{Title: c.Title, X: c.X, Y: c.Y, LogX: c.LogX, LogY: c.LogY}
		for _, l := range c.Lines {
			line := Line{Name: l.Name, X: l.X, Y: l.Y}
			for i := range min(len(l.PaperX), len(l.PaperY)) {
				line.Paper = append(line.Paper, Point{l.PaperX[i], l.PaperY[i]})
			}
			chart.Lines = append(chart.Lines, line)
		}
		for _, b := range c.Bars {
			bar := Bar{Name: b.Name}
			if len(b.Ours) > 0 {
				bar.Ours = b.Ours[0]
			}
			if len(b.Paper) > 0 {
				bar.Paper = &b.Paper[0]
			}
			chart.Bars = append(chart.Bars, bar)
		}
		o.Charts = append(o.Charts, chart)
	}
	return o.check()
}

// An outcome in a file.
type (
	keptOutcome struct {
		Rows       []keptRow       `json:"rows"`
		Because    string          `json:"because,omitempty"`
		Settings   []keptParameter `json:"settings,omitempty"`
		Charts     []keptChart     `json:"charts,omitempty"`
		PacketHops uint64          `json:"packet_hops"`
	}
	keptRow struct {
		Row
		Rule *rule `json:"rule,omitempty"`
	}
	keptParameter struct {
		Parameter
		Chosen bool `json:"chosen,omitempty"`
	}
	keptChart struct {
		Title string     `json:"title"`
		X     string     `json:"x"`
		Y     string     `json:"y"`
		LogX  bool       `json:"log_x,omitempty"`
		LogY  bool       `json:"log_y,omitempty"`
		Lines []keptLine `json:"lines,omitempty"`
		Bars  []keptBar  `json:"bars,omitempty"`
	}
	keptLine struct {
		Name string  `json:"name"`
		X    numbers `json:"x"`
		Y    numbers `json:"y"`
		// Points that the paper states.
		PaperX numbers `json:"paper_x,omitempty"`
		PaperY numbers `json:"paper_y,omitempty"`
	}
	keptBar struct {
		Name  string  `json:"name"`
		Ours  numbers `json:"ours"`
		Paper numbers `json:"paper,omitempty"`
	}
)

// numbers are floats, of which charts may have some that JSON has no number for.
type numbers []float64

func (n numbers) MarshalJSON() ([]byte, error) {
	b := []byte{'['}
	for i, x := range n {
		if i > 0 {
			b = append(b, ',')
		}
		if math.IsNaN(x) || math.IsInf(x, 0) {
			b = strconv.AppendQuote(b, strconv.FormatFloat(x, 'g', -1, 64))
		} else {
			b = strconv.AppendFloat(b, x, 'g', -1, 64)
		}
	}
	return append(b, ']'), nil
}

func (n *numbers) UnmarshalJSON(b []byte) error {
	var all []json.RawMessage
	if err := json.Unmarshal(b, &all); err != nil {
		return err
	}
	*n = make(numbers, len(all))
	for i, raw := range all {
		s := string(raw)
		if unquoted, err := strconv.Unquote(s); err == nil {
			s = unquoted
		}
		x, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return err
		}
		(*n)[i] = x
	}
	return nil
}
