package results

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"weft/bench/papers"
)

// Document is a file with a part that is written from results.
type Document struct {
	Path string
	Part string // between <!--sim:Part--> and <!--/sim:Part-->
	Text func(r *Results, all []papers.Experiment) string
}

// Documents are all of them, by their path in the repository.
var Documents = []Document{
	{"bench/RESULTS.md", "table", (*Results).Table},
	{"docs/research.md", "counts", (*Results).Counts},
	{"README.md", "counts", (*Results).Brief},
}

// Fill writes the part into a document's text.
func (d Document) Fill(text string, r *Results, all []papers.Experiment) (string, error) {
	begin, end := fmt.Sprintf("<!--sim:%s-->", d.Part), fmt.Sprintf("<!--/sim:%s-->", d.Part)
	before, rest, found := strings.Cut(text, begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		return "", fmt.Errorf("%s: there is no %s with %s after it: write both where the text belongs", d.Path, begin, end)
	}
	return before + begin + d.Text(r, all) + end + after, nil
}

// standing is what an experiment is counted as.
type standing int

const (
	agrees standing = iota
	inOrder
	undecided
	disagrees
	noEvidence
	notTried
	onlyFitted
	onlyBounds
	notJudged
	standings
)

// words are the standings' in the counts.
var words = [standings]string{
	"agree within tolerance", "agree in sign and order", "are not decided by their seeds", "disagree",
	"are no evidence, as a mutant is not caught", "have mutants not tried with their seeds", "have fitted figures alone", "hold by bounds alone", "are not judged by these rules yet",
}

func (r *Results) standing(e papers.Experiment) standing {
	run := r.Runs[e.Name]
	switch {
	case run == nil:
		return notJudged
	case run.Verdict == papers.Disagrees:
		return disagrees
	case run.Verdict == papers.Undecided:
		return undecided
	case run.Verdict == papers.OnlyFitted:
		return onlyFitted
	case run.Verdict == papers.OnlyBounds:
		return onlyBounds
	}
	trials := r.certifying(e)
	switch {
	case len(trials) == 0:
		return notTried
	case slices.ContainsFunc(trials, func(t Trial) bool { return !t.Caught }):
		return noEvidence
	case run.Verdict == papers.Agrees:
		return agrees
	}
	return inOrder
}

// totals are of all experiments.
type totals struct {
	of     [standings]int
	stand  papers.Score             // of experiments that agree or are in order
	judged papers.Score             // of all that are judged
	by     map[float64]papers.Score // of all that are judged, by tolerance
	ranges papers.Score             // of all that are judged, where the paper gives a range
	open   papers.Open              // of those that disagree, are undecided or are in order
}

func (r *Results) totals(all []papers.Experiment) totals {
	n := totals{by: make(map[float64]papers.Score)}
	for _, e := range all {
		s := r.standing(e)
		n.of[s]++
		run := r.Runs[e.Name]
		if run == nil {
			continue
		}
		if s == disagrees || s == undecided || s == inOrder {
			n.open.Add(run.Verdict, r.decided(e, run))
		}
		n.judged, n.ranges = n.judged.Plus(run.Score), n.ranges.Plus(papers.RangeScore(run.Rows))
		for percent, score := range papers.ByTolerance(run.Rows) {
			n.by[percent] = n.by[percent].Plus(score)
		}
		if s == agrees || s == inOrder {
			n.stand = n.stand.Plus(run.Score)
		}
	}
	return n
}

// standings lists how many experiments are of each standing.
func (n totals) standings() (parts []string) {
	for s, of := range n.of {
		if of > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", of, words[s]))
		}
	}
	return parts
}

// byTolerance lists scores: "35 of 40 (10 %)".
func byTolerance(by map[float64]papers.Score) string {
	var parts []string
	for _, percent := range slices.Sorted(maps.Keys(by)) {
		parts = append(parts, fmt.Sprintf("%d of %d (%g %%)", by[percent].Within, by[percent].Of, percent))
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// Counts is a sentence about all experiments.
func (r *Results) Counts(all []papers.Experiment) string {
	n := r.totals(all)
	decided := ""
	if len(r.Decisions) > 0 {
		decided = fmt.Sprintf(" %s.", n.open)
	}
	ranges := ""
	if n.ranges.Of > 0 {
		ranges = fmt.Sprintf(", ranges included, in which any value counts: %d of %d", n.ranges.Within, n.ranges.Of)
	}
	return fmt.Sprintf("Of %d experiments %s.%s Of those that agree or are in order %s are within tolerance; of all judged ones %d of %d, by tolerance %s%s.",
		len(all), listed(n.standings()), decided, n.stand, n.judged.Within, n.judged.Of, byTolerance(n.by), ranges)
}

// Brief is what the README has room for. It counts every experiment: whatever is neither
// for the paper nor against it is no evidence.
func (r *Results) Brief(all []papers.Experiment) string {
	n := r.totals(all)
	silent := len(all) - n.of[agrees] - n.of[inOrder] - n.of[disagrees]
	return fmt.Sprintf("Of %d experiments the paper's figures come out in %d and only its order in %d; %d disagree, and %d are no evidence. Of %d published figures %d are within tolerance",
		len(all), n.of[agrees], n.of[inOrder], n.of[disagrees], silent, n.judged.Of, n.judged.Within)
}

func listed(parts []string) string {
	if len(parts) < 2 {
		return strings.Join(parts, "")
	}
	return strings.Join(parts[:len(parts)-1], ", ") + " and " + parts[len(parts)-1]
}

// Table has a line for each experiment, and the counts.
func (r *Results) Table(all []papers.Experiment) string {
	var b strings.Builder
	b.WriteString("\n| experiment | verdict | published values within tolerance (which) | mutants caught | run | by the rules before |\n|---|---|---|---|---|---|\n")
	for _, e := range all {
		run := r.Runs[e.Name]
		if run == nil {
			fmt.Fprintf(&b, "| %s | not judged by these rules yet | - | %s | `weft sim run %s --seeds %d --store bench/papers/results`, about %s of CPU | %s |\n",
				e.Name, r.caught(e), e.Name, Planned(e.Name), minutes(float64(Planned(e.Name))*perSeed[e.Name]), before[e.Name])
			continue
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", e.Name, r.verdict(e), byTolerance(papers.ByTolerance(run.Rows)), r.caught(e), run.where(), before[e.Name])
	}
	fmt.Fprintf(&b, "\n%s\n", r.Counts(all))
	for _, machine := range r.machines(all) {
		fmt.Fprintf(&b, "\nMachine: %s.\n", machine)
	}
	return b.String()
}

// verdict is an experiment's, which says so where it is no evidence, and says what decides
// its rows that are out.
func (r *Results) verdict(e papers.Experiment) string {
	run := r.Runs[e.Name]
	s := string(run.Verdict)
	switch r.standing(e) {
	case notTried:
		s += ", but mutants not tried: it is no evidence without full trials with these seeds"
	case noEvidence:
		var passing, untold []string
		for _, t := range r.certifying(e) {
			if t.Passes {
				passing = append(passing, t.Mutant)
			} else if !t.Caught {
				untold = append(untold, t.Mutant)
			}
		}
		s += ", but is no evidence"
		if len(passing) > 0 {
			s += ": it passes as well where " + strings.Join(passing, "; and where ")
		}
		if len(untold) > 0 {
			s += ": no row about it tells where " + strings.Join(untold, "; and where ")
		}
	}
	switch d := r.decided(e, run); {
	case d.Any() || d.Out > 0 && d.Seeds > 0:
		s += "; " + d.String()
	case d.Out > 0:
		s += "; open: no other value has run"
	}
	if n := others(run.Rows); n > 0 {
		s += fmt.Sprintf("; bounds and claims of the paper's that fail: %d", n)
	}
	return s
}

// others is how many bounds and claims of the paper's fail. They keep an experiment from agreeing, and from nothing less.
func others(rows []papers.Row) (n int) {
	for _, row := range rows {
		if !row.OK && (row.Kind == papers.KindBound || row.Kind == papers.KindClaim) {
			n++
		}
	}
	return n
}

// caught is how many of those mutants are caught of which the experiment tells anything.
func (r *Results) caught(e papers.Experiment) string {
	trials, caught, told, quick, modified := r.triedOf(e), 0, 0, false, false
	for _, t := range trials {
		if t.Caught {
			caught++
		}
		if t.Caught || t.Passes {
			told++
		}
		quick, modified = quick || t.Quick, modified || t.Modified
	}
	form := ""
	if quick {
		form += " (quick)"
	}
	if modified {
		form += " " + withChanges
	}
	switch {
	case len(trials) == 0:
		return "not tried"
	case told == 0:
		return "says nothing" + form
	}
	return fmt.Sprintf("%d of %d%s", caught, told, form)
}

// withChanges tells that what ran was not the commit's.
const withChanges = "with changes"

// where says which commit ran with which seeds, and for how long.
func (r *Run) where() string {
	seeds := fmt.Sprintf("seed %d", r.Seed)
	if r.Seeds > 1 {
		seeds = fmt.Sprintf("seeds %d to %d", r.Seed, r.Seed+uint64(r.Seeds)-1)
	}
	commit := fmt.Sprintf("%.12s", r.Commit)
	if r.Modified {
		commit += " " + withChanges
	}
	return fmt.Sprintf("%s, %s, %.0f CPU-s", commit, seeds, r.CPUS)
}

// machines are those of the runs, each once, in the order of experiments.
func (r *Results) machines(all []papers.Experiment) (list []string) {
	seen := make(map[string]bool)
	for _, e := range all {
		if run := r.Runs[e.Name]; run != nil && !seen[run.Machine] {
			seen[run.Machine] = true
			list = append(list, run.Machine)
		}
	}
	return list
}

func minutes(seconds float64) string {
	if seconds < 90 {
		return fmt.Sprintf("%.0f s", seconds)
	}
	return fmt.Sprintf("%.0f min", seconds/60)
}
