// Package resequencer restores the order of TCP segments that took different
// paths, below TCP: a segment that arrives ahead of its turn is held until the
// gap before it is filled or a time has passed (DRB §5; 10 ms there).
//
//	arrives     1   3   4   2          5   7   8    ... Hold ...   6
//	delivered   1           2 3 4      5            7 8            6
//
// The sequence is TCP's own, so a sender needs to know nothing of it, and what
// does not occupy sequence space (pure acknowledgements) never waits. Nothing
// is ever dropped or duplicated: every packet pushed comes out once, and
// whatever cannot be explained is delivered at once. A segment can be late or
// early, never lost, by a mistake in here.
//
// A hole is waited for once. When its time is up it is declared lost, and the
// flow goes on behind it: TCP sees the gap and asks for it.
//
// The package is pure: it takes the time, owns no goroutine, timer or socket,
// and once its tables have grown to their working size it allocates nothing.
package resequencer
