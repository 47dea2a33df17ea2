package results

import (
	"fmt"
	"slices"
	"strings"
)

// Variant is what a variant of an experiment gave.
type Variant interface {
	Trial | Finding
	origin() origin
}

// origin is what variants are replaced by: all those of an experiment in one form.
type origin struct {
	kind, experiment string
	quick            bool
	seeds            int
}

// Merge replaces variants of the same experiments in the same form, and keeps the rest. It
// is an error to replace one by another with fewer seeds.
func Merge[T Variant](old, news []T) ([]T, error) {
	all := slices.Clone(news)
	for _, v := range old {
		had := v.origin()
		i := slices.IndexFunc(news, func(n T) bool {
			o := n.origin()
			return o.experiment == had.experiment && o.quick == had.quick
		})
		if i < 0 {
			all = append(all, v)
		} else if o := news[i].origin(); o.seeds < had.seeds {
			return nil, fmt.Errorf("%s: %s of --seeds=%d cannot replace those of %d: try them with as many", had.experiment, had.kind, o.seeds, had.seeds)
		}
	}
	slices.SortStableFunc(all, func(a, b T) int { return strings.Compare(a.origin().experiment, b.origin().experiment) })
	return all, nil
}

// ListJSON has a line for each variant.
func ListJSON[T Variant](all []T) ([]byte, error) {
	b, err := lines(all)
	return append(b, '\n'), err
}
