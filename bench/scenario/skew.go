package scenario

import (
	"context"
	"time"

	"weft/resequencer"
)

// SkewRow is goodput over the skews, and over losses, of one kind of host.
type SkewRow struct {
	Name       string    `json:"name"`
	Policy     string    `json:"policy"`
	Discipline string    `json:"resequencer"`
	Goodput    []float64 `json:"goodput_gbps"` // by skew; 0: not done in ten seconds
}

// kind is a kind of host.
type kind struct {
	policy     string
	discipline resequencer.Discipline
}

func (k kind) String() string {
	if k.discipline == resequencer.Off {
		return k.policy + ", no resequencer"
	}
	return k.policy + ", " + k.discipline.String()
}

// kinds are those that SkewTable and LossTable compare.
var kinds = []kind{
	{"ecmp", resequencer.Off},
	{"presto", resequencer.Off},
	{"presto", resequencer.Presto},
	{"presto", resequencer.Sequence},
	{"drb", resequencer.Off},
	{"drb", resequencer.Sequence},
}

// table runs a scenario for all kinds of host and n values of what set changes.
func table(ctx context.Context, bytes int64, n int, set func(*Scenario, int), progress func(done, total int)) ([]SkewRow, error) {
	var rows []SkewRow
	for _, k := range kinds {
		row := SkewRow{Name: k.String(), Policy: k.policy, Discipline: k.discipline.String()}
		for i := range n {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			s := Scenario{Policy: k.policy, Discipline: k.discipline, Bytes: bytes, Seed: 1}
			set(&s, i)
			r, _ := s.Run() // what did not end in time has no goodput
			row.Goodput = append(row.Goodput, r.Goodput/1e9)
			progress(len(rows)*n+i+1, len(kinds)*n)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// SkewTable measures goodput when one of four paths is slower.
func SkewTable(ctx context.Context, bytes int64, skews []time.Duration, progress func(done, total int)) ([]SkewRow, error) {
	return table(ctx, bytes, len(skews), func(s *Scenario, i int) { s.Skew = skews[i] }, progress)
}

// LossTable measures goodput when all paths lose packets.
func LossTable(ctx context.Context, bytes int64, losses []float64, progress func(done, total int)) ([]SkewRow, error) {
	return table(ctx, bytes, len(losses), func(s *Scenario, i int) { s.Loss = losses[i] }, progress)
}
