package stack

import "weft/internal/clock"

type (
	Clock = clock.Clock
	Timer = clock.Timer
)
