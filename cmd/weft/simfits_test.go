package main

import (
	"slices"
	"testing"
)

// triedFits are the fitted values that were ever tried, by experiment and parameter. A row
// that one of them moves is not called immovable, so without the value a verdict would look
// better than it is: none may go.
var triedFits = map[[2]string][]string{}

// Every fitted value is in the list, and everything in the list is still a fitted value.
func TestStored_fitsStay(t *testing.T) {
	found := make(map[[2]string][]string)
	for _, e := range experiments() {
		for _, d := range e.Decisions {
			for _, v := range d.Values {
				if key := [2]string{e.Name, d.Parameter}; v.Fitted {
					found[key] = append(found[key], v.Name)
					if !slices.Contains(triedFits[key], v.Name) {
						t.Errorf("%q: %q is fitted: put it on the list, so that it stays", key, v.Name)
					}
				}
			}
		}
	}
	for key, values := range triedFits {
		for _, v := range values {
			if !slices.Contains(found[key], v) {
				t.Errorf("%q: %q was tried and is no fitted value any more: without it the verdict flatters", key, v)
			}
		}
	}
}
