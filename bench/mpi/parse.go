package mpi

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// parse reads the seconds that the program prints, one number for each round.
func parse(text string, rounds int) (took []time.Duration, err error) {
	for _, f := range strings.Fields(text) {
		s, err := strconv.ParseFloat(f, 64)
		if err != nil || !(s >= 0 && s < math.MaxInt64/1e9) {
			return nil, fmt.Errorf("the ranks print %.100q in place of seconds", text)
		}
		took = append(took, time.Duration(s*float64(time.Second)))
	}
	if len(took) != rounds || !strings.HasSuffix(text, "\n") {
		return nil, fmt.Errorf("the ranks print %d whole lines in place of %d: %.100q", strings.Count(text, "\n"), rounds, text)
	}
	return took, nil
}
