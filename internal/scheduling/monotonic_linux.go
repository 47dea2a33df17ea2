package scheduling

import (
	"time"

	"weft/internal/kernel"
)

// Monotonic is the clock of the programs: Config.Now.
func Monotonic() (time.Duration, error) {
	now, err := kernel.Monotonic()
	return time.Duration(now), err
}
