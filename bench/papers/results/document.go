package results

import (
	"fmt"
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
	notJudged
	standings
)

// words are the standings' in the counts.
var words = [standings]string{"agree within tolerance", "agree in sign and order", "are not decided by their seeds", "disagree", "are no evidence, as a mutant passes", "are not judged by these rules yet"}

func (r *Results) standing(experiment string) standing {
	run := r.Runs[experiment]
	switch {
	case run == nil:
		return notJudged
	case run.Verdict == papers.Disagrees:
		return disagrees
	case len(r.Passing(experiment)) > 0:
		return noEvidence
	case run.Verdict == papers.Agrees:
		return agrees
	case run.Verdict == papers.AgreesOrder:
		return inOrder
	}
	return undecided
}

// count has how many experiments are of each standing, and the score of all.
func (r *Results) count(all []papers.Experiment) (n [standings]int, score papers.Score) {
	for _, e := range all {
		n[r.standing(e.Name)]++
		if run := r.Runs[e.Name]; run != nil {
			score.Within += run.Score.Within
			score.Of += run.Score.Of
		}
	}
	return n, score
}

// Counts is a sentence about all experiments.
func (r *Results) Counts(all []papers.Experiment) string {
	n, score := r.count(all)
	var parts []string
	for s, of := range n {
		if of > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", of, words[s]))
		}
	}
	return fmt.Sprintf("Of %d experiments %s. Of the judged ones %s are within tolerance.", len(all), listed(parts), score)
}

// Brief is what the README has room for.
func (r *Results) Brief(all []papers.Experiment) string {
	n, score := r.count(all)
	return fmt.Sprintf("%d experiments: %d agree, %d in order, %d of %d published figures within tolerance, %d unjudged",
		len(all), n[agrees], n[inOrder], score.Within, score.Of, n[notJudged])
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
	b.WriteString("\n| experiment | verdict | published values within tolerance | mutants caught | run | by the rules before |\n|---|---|---|---|---|---|\n")
	for _, e := range all {
		run := r.Runs[e.Name]
		if run == nil {
			fmt.Fprintf(&b, "| %s | not judged by these rules yet | - | %s | `weft sim run %s --seeds %d --store bench/papers/results`, about %s of CPU | %s |\n",
				e.Name, r.caught(e), e.Name, planned, minutes(planned*perSeed[e.Name]), before[e.Name])
			continue
		}
		fmt.Fprintf(&b, "| %s | %s | %d of %d | %s | %s | %s |\n", e.Name, r.verdict(e), run.Score.Within, run.Score.Of, r.caught(e), run.where(), before[e.Name])
	}
	fmt.Fprintf(&b, "\n%s\n", r.Counts(all))
	for _, machine := range r.machines(all) {
		fmt.Fprintf(&b, "\nMachine: %s.\n", machine)
	}
	return b.String()
}

// verdict is an experiment's, which says so where it is no evidence.
func (r *Results) verdict(e papers.Experiment) string {
	s := string(r.Runs[e.Name].Verdict)
	if passing := r.Passing(e.Name); len(passing) > 0 {
		s += ", but is no evidence: it passes as well where " + strings.Join(passing, "; and where ")
	}
	return s
}

// caught is how many of those mutants are caught of which the experiment tells anything.
func (r *Results) caught(e papers.Experiment) string {
	trials, caught, told, form := r.Tried(e.Name), 0, 0, ""
	for _, t := range trials {
		if t.Caught {
			caught++
		}
		if t.Caught || t.Passes {
			told++
		}
		if t.Quick {
			form = " (quick)"
		}
	}
	switch {
	case len(trials) == 0:
		return "not tried"
	case told == 0:
		return "says nothing" + form
	}
	return fmt.Sprintf("%d of %d%s", caught, told, form)
}

// where says which commit ran with which seeds, and for how long.
func (r *Run) where() string {
	seeds := fmt.Sprintf("seed %d", r.Seed)
	if r.Seeds > 1 {
		seeds = fmt.Sprintf("seeds %d to %d", r.Seed, r.Seed+uint64(r.Seeds)-1)
	}
	commit := fmt.Sprintf("%.12s", r.Commit)
	if r.Modified {
		commit += " with changes"
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
