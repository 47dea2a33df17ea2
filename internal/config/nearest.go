package config

import (
	"fmt"
	"strings"
)

// maxWord bounds what Distance looks at, in bytes.
const maxWord = 64

// Distance is Levenshtein's: how many bytes must be put in, taken out or exchanged
// to make one word of the other. Only the first maxWord bytes of each count.
func Distance(a, b string) int {
	a, b = a[:min(len(a), maxWord)], b[:min(len(b), maxWord)]
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// DidYouMean names the known word that is nearest to one that is not, or all if
// none is near.
func DidYouMean(word string, known []string) string {
	best, at := "", len(word)/2+1
	for _, k := range known {
		if d := Distance(word, k); d < at {
			best, at = k, d
		}
	}
	if best != "" {
		return fmt.Sprintf("did you mean %s?", best)
	}
	return "known: " + strings.Join(known, ", ")
}
