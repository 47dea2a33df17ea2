package papers

import (
	"crypto/sha256"
	"fmt"
	"strconv"
)

// Identity is the same for two runs of an experiment, whatever commit made them, if their
// settings and rows are the same: names and values of parameters, and what rows compare with
// which tolerance. What was found beside one run says something of another only if both have
// the same. Rows without anything to compare with do not count, nor do digits beyond six, so
// that it can be told of stored rows as well.
//
// It knows nothing of the code that gives the figures.
func (e Experiment) Identity(rows []Row) string {
	h := sha256.New()
	for _, p := range e.Setting {
		fmt.Fprintf(h, "%q %q %v\n", p.Name, p.Value, p.Chosen)
	}
	for _, r := range rows {
		if r.Kind == KindInfo {
			continue
		}
		paper := ""
		if r.Paper != nil {
			paper = strconv.FormatFloat(*r.Paper, 'g', 6, 64)
		}
		fmt.Fprintf(h, "%q %q %q %q %g %q\n", r.Label, r.Metric, r.Kind, paper, r.TolerancePercent, r.Note)
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:8])
}
