package main

import (
	"strconv"
	"strings"

	"weft/fabric"
)

// parseRED reads MIN,MAX or MIN,MAX,MAX_P, and what is done to the packets chosen: drop or
// mark.
func parseRED(text, action string) (r fabric.RED, err error) {
	if action != "drop" && action != "mark" {
		return r, usagef("--red-action %q: use drop or mark", action)
	}
	if text == "" {
		return r, nil
	}
	words := strings.Split(text, ",")
	if len(words) != 2 && len(words) != 3 {
		return r, usagef("--red %q: write MIN,MAX or MIN,MAX,MAX_P, such as 4ms,12ms,0.1", text)
	}
	for i, to := range []*fabric.QueueLength{&r.Min, &r.Max} {
		if err := to.UnmarshalText([]byte(words[i])); err != nil {
			return r, usagef("--red: %w", err)
		}
	}
	if len(words) == 3 {
		if r.MaxP, err = strconv.ParseFloat(words[2], 64); err != nil {
			return r, usagef("--red: MAX_P %q is not a number; write one such as 0.1", words[2])
		}
	}
	r.Gentle, r.Mark = true, action == "mark"
	return r, nil
}
