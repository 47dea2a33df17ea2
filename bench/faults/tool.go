package faults

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Tool is a command that an operator asks.
type Tool string

// The tools, in the order in which they are asked.
const (
	Status Tool = "status"
	Blame  Tool = "blame"
	Doctor Tool = "doctor"
	// Fabric looks at all nodes, so an operator asks it after the others.
	Fabric Tool = "doctor --fabric"
)

// Tools lists those that are asked all the time.
func Tools() []Tool { return []Tool{Status, Blame, Doctor} }

// Cause says what names the cause of a fault: of one of its lists, all words are in what a tool
// says first, besides what to do about it. Case does not count.
type Cause [][]string

// In reports whether a sentence has all words of a list.
func (c Cause) In(sentence string) bool {
	sentence = strings.ToLower(sentence)
	return slices.ContainsFunc(c, func(all []string) bool {
		return !slices.ContainsFunc(all, func(word string) bool { return !strings.Contains(sentence, strings.ToLower(word)) })
	})
}

func (c Cause) String() string {
	var list []string
	for _, all := range c {
		list = append(list, strings.Join(all, "+"))
	}
	return strings.Join(list, " or ")
}

// Said is what a tool says first.
type Said struct {
	First string // "": nothing
	Cause string // First without what to do about it
	Alarm bool   // it says that something is wrong; else it is a note
	Check string // of the doctor, the check that failed and why, as known has it
}

// said reads what a tool has printed. failed is why it has ended with an error, if it has.
// known are what the doctor finds in this lab while nothing is wrong, as Said.Check has it.
func (t Tool) said(output string, failed error, known []string) (Said, error) {
	switch t {
	case Doctor, Fabric:
		return saidByDoctor(output, failed, known)
	case Blame, Status:
		if failed != nil {
			return saidAsError(output), nil
		}
	}
	if t == Blame {
		return saidByBlame(output), nil
	}
	return saidByStatus(output), nil
}

// saidAsError is all of what a tool says that fails.
func saidAsError(output string) Said {
	text := strings.TrimSpace(output)
	return Said{First: text, Cause: text, Alarm: true}
}

// saidByStatus joins the verdict with the first problem, and what to do about it.
func saidByStatus(output string) (s Said) {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	var problem []string
	for _, l := range lines[1:] {
		begins := strings.HasPrefix(l, "! ") || strings.HasPrefix(l, "- ")
		if begins && problem == nil || problem != nil && !begins && strings.HasPrefix(l, "  ") {
			problem = append(problem, strings.TrimSpace(l))
		} else if problem != nil {
			break
		}
	}
	s.Alarm = !strings.Contains(lines[0], ": SPRAYED, ") && !strings.Contains(lines[0], ": WELL, ")
	if s.Alarm {
		problem = slices.Insert(problem, 0, lines[0])
	}
	s.First = strings.Join(problem, " ")
	if i := slices.IndexFunc(problem, func(l string) bool { return strings.HasPrefix(l, "do: ") }); i >= 0 {
		problem = problem[:i]
	}
	s.Cause = strings.Join(problem, " ")
	return s
}

// saidByBlame is the first entry of the list.
func saidByBlame(output string) (s Said) {
	for i, l := range strings.Split(strings.TrimSpace(output), "\n") {
		if i == 0 && !strings.HasPrefix(l, "1. ") || i > 0 && !strings.HasPrefix(l, "  ") {
			break
		}
		s.First, s.Alarm = strings.TrimSpace(s.First+" "+strings.TrimSpace(l)), true
	}
	s.Cause = s.First
	return s
}

// finding is what the doctor says of a check.
type finding struct {
	Node  string
	Check string
	OK    bool
	Cause string
	Fix   string
}

// what is the check that failed, where and why.
func (f *finding) what() string {
	what := strings.TrimSpace(f.Check + ": " + f.Cause)
	if f.Node != "" {
		what = f.Node + ": " + what
	}
	return what
}

// wrong is what the doctor found wrong, the most likely root first.
func wrong(output string) (found []finding, err error) {
	if err := json.Unmarshal([]byte(output), &found); err != nil {
		return nil, fmt.Errorf("weft doctor --json: %w in %q", err, output)
	}
	return slices.DeleteFunc(found, func(f finding) bool { return f.OK }), nil
}

// saidByDoctor is the first check that has failed.
func saidByDoctor(output string, failed error, known []string) (s Said, err error) {
	found, err := wrong(output)
	if err != nil {
		if failed != nil {
			return saidAsError(output), nil
		}
		return s, err
	}
	for _, f := range found {
		if what := f.what(); !slices.Contains(known, what) {
			return Said{First: strings.TrimSpace(what + " " + f.Fix), Cause: what, Alarm: true, Check: what}, nil
		}
	}
	return s, nil
}
