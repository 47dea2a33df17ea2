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
)

// Tools lists them.
func Tools() []Tool { return []Tool{Status, Blame, Doctor} }

// Cause says what names the cause of a fault: of one of its lists, all words are in what a tool
// says first. Case does not count.
type Cause [][]string

// In reports whether a sentence names the cause.
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
	Alarm bool   // it says that something is wrong; else it is a note
	Check string // of the doctor, the check that failed and why
}

// said reads what a tool has printed. failed is why it has ended with an error, if it has.
// known are what the doctor finds in this lab while nothing is wrong, as Said.Check has it.
func (t Tool) said(output string, failed error, known []string) (Said, error) {
	switch t {
	case Doctor:
		return saidByDoctor(output, failed, known)
	case Blame, Status:
		if failed != nil {
			return Said{First: strings.TrimSpace(output), Alarm: true}, nil
		}
	}
	if t == Blame {
		return saidByBlame(output), nil
	}
	return saidByStatus(output), nil
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
	return s
}

// saidByDoctor is the first check that has failed.
func saidByDoctor(output string, failed error, known []string) (s Said, err error) {
	var checks []struct {
		Check string
		OK    bool
		Cause string
		Fix   string
	}
	if err := json.Unmarshal([]byte(output), &checks); err != nil {
		if failed != nil {
			return Said{First: strings.TrimSpace(output), Alarm: true}, nil
		}
		return s, fmt.Errorf("weft doctor --json: %w in %q", err, output)
	}
	for _, c := range checks {
		what := strings.TrimSpace(c.Check + ": " + c.Cause)
		if !c.OK && !slices.Contains(known, what) {
			return Said{First: strings.TrimSpace(what + " " + c.Fix), Alarm: true, Check: what}, nil
		}
	}
	return s, nil
}
