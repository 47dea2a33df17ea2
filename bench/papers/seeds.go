package papers

import (
	"fmt"
	"slices"

	"weft/bench/stats"
)

// combine makes one outcome of those of several seeds: rows are medians, settings and
// packet-hops those of all, the rest is the first's.
func combine(first uint64, all []*Outcome) (*Outcome, error) {
	if len(all) == 1 {
		return all[0], nil
	}
	rows, err := medians(first, all)
	if err != nil {
		return nil, err
	}
	out := *all[0]
	out.Rows, out.Settings = rows, settingsOf(first, all)
	for _, o := range all[1:] {
		out.PacketHops += o.PacketHops
	}
	return &out, nil
}

// medians has every row once, in the first seed's order.
func medians(first uint64, all []*Outcome) ([]Row, error) {
	rows := make([]Row, len(all[0].Rows))
	for i, r := range all[0].Rows {
		same := make([]Row, len(all))
		for j, o := range all {
			var err error
			if same[j], err = o.row(r, first+uint64(j)); err != nil {
				return nil, err
			}
		}
		rows[i] = median(same)
	}
	for _, o := range all[1:] {
		for _, r := range o.Rows {
			if _, err := all[0].row(r, first); err != nil {
				return nil, err
			}
		}
	}
	return rows, nil
}

// row finds by label and metric a seed's row that another seed has.
func (o *Outcome) row(of Row, seed uint64) (found Row, err error) {
	n := 0
	for _, r := range o.Rows {
		if r.Label == of.Label && r.Metric == of.Metric {
			found = r
			n++
		}
	}
	if n != 1 {
		return found, fmt.Errorf("seed %d has %d rows %q, %s in place of one: take seeds one by one (--seeds=1)", seed, n, of.Label, of.Metric)
	}
	return found, nil
}

// median is a row of the same row of several seeds. Ours is judged by the row's rule;
// what has none holds if it does with more than half of them.
func median(same []Row) Row {
	ours, held := make([]float64, len(same)), 0
	for i, r := range same {
		ours[i] = r.Ours
		if r.OK {
			held++
		}
	}
	low, high := slices.Min(ours), slices.Max(ours)
	r := same[0]
	r.Ours, r.Low, r.High = stats.Median(ours), &low, &high
	if r.Kind != KindInfo {
		r.Seeds = len(same)
	}
	if r.rule != nil {
		r.OK = r.rule.holds(r.Ours)
	} else if r.Kind != KindInfo {
		r.Held, r.OK = held, 2*held > len(same)
	}
	return r
}

// settingsOf has once what is the same with all seeds, and the rest of each.
func settingsOf(first uint64, all []*Outcome) (settings []Parameter) {
	for i, o := range all {
		for _, p := range o.Settings {
			common := !slices.ContainsFunc(all, func(other *Outcome) bool { return !slices.Contains(other.Settings, p) })
			if common && i > 0 {
				continue
			}
			if !common {
				p.Name = fmt.Sprintf("%s, seed %d", p.Name, first+uint64(i))
			}
			settings = append(settings, p)
		}
	}
	return settings
}
