// Package named picks by name what a user wants of a benchmark: rows, cases, scenarios.
package named

import (
	"fmt"
	"slices"
	"strings"
)

// Select returns those of all with these names, in the order of the names. Its error says
// which name is unknown, or is there twice; what is a word for an element, such as "row".
func Select[T any](what string, all []T, name func(T) string, names []string) ([]T, error) {
	known := make([]string, len(all))
	for i, x := range all {
		known[i] = name(x)
	}
	chosen := make([]T, 0, len(names))
	for n, wanted := range names {
		i := slices.Index(known, wanted)
		if i < 0 {
			return nil, fmt.Errorf("%s %q: unknown; known: %s", what, wanted, strings.Join(known, ", "))
		}
		if slices.Contains(names[:n], wanted) {
			return nil, fmt.Errorf("%s %q is there twice; leave one out", what, wanted)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// Keep is Select in the order of all, where names may be there twice; without names it returns
// all.
func Keep[T any](what string, all []T, name func(T) string, names []string) ([]T, error) {
	if len(names) == 0 {
		return all, nil
	}
	if _, err := Select(what, all, name, slices.Compact(slices.Sorted(slices.Values(names)))); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(all), func(x T) bool { return !slices.Contains(names, name(x)) }), nil
}
