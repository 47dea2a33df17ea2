package strictyaml

import (
	"fmt"
	"strings"

	"weft/internal/nearest"
)

// didYouMean names the known word that is nearest to one that is not, or all if
// none is near.
func didYouMean(word string, known []string) string {
	best, at := "", len(word)/2+1
	for _, k := range known {
		if d := nearest.Distance(word, k); d < at {
			best, at = k, d
		}
	}
	if best != "" {
		return fmt.Sprintf("did you mean %s?", best)
	}
	return "known: " + strings.Join(known, ", ")
}
