package scheduling

import (
	"math"
	"strings"
	"testing"
	"time"

	"weft/internal/config"
)

func TestFile_ratesAreNumbers(t *testing.T) {
	for rate, good := range map[float64]bool{0: true, 1000: true, -1: false, math.NaN(): false, math.Inf(1): false} {
		f := File{Share: 0.1, Every: time.Second, LinkMbit: rate}
		if err := f.Check(config.Lines{}, nil, "keys", true); (err == nil) != good || !good && !strings.Contains(err.Error(), "link_mbit") {
			t.Errorf("link_mbit %v: %v", rate, err)
		}
	}
}
