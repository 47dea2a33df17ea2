package topoupdate

// ReplayWindow tells which counters of a session have been seen (as RFC 6479, in
// one word). One hop hardly reorders; 64 allows for a queue of another priority.
type ReplayWindow struct {
	next uint64 // the highest seen, plus 1; 0: none yet
	bits uint64 // bit i: next-1-i has been seen
}

// Fresh reports whether n may not have been seen yet.
func (w *ReplayWindow) Fresh(n uint64) bool {
	if n >= w.next {
		return true
	}
	back := w.next - 1 - n
	return back < 64 && w.bits&(1<<back) == 0
}

// Mark notes n as seen. Only what has proved genuine may be marked.
func (w *ReplayWindow) Mark(n uint64) {
	if n == ^uint64(0) {
		return // never sent by anybody; next could not be stored
	}
	if n >= w.next {
		w.bits = w.bits<<(n+1-w.next) | 1
		w.next = n + 1
		return
	}
	if back := w.next - 1 - n; back < 64 {
		w.bits |= 1 << back
	}
}
