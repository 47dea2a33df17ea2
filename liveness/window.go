package liveness

import "math"

const (
	windows = 16 // pieces of the sliding window of losses, see Config.piece
	// doubt is the negative logarithm of the chance that a verdict is wrong: 10^-9.
	doubt = 20.7
	// hint is the same for what is worth a probe.
	hint = 5
	// likely is the same for telling a dead path's losses from a bad burst's.
	likely = 7
	// least is the rate of losses that nobody is blamed for.
	least = 0.02
)

// window counts the packets sent and lost in the last pieces of time. It counts
// lazily: a window that nobody touches costs nothing.
type window struct {
	piece int32 // the number of the latest one
	sent  [windows]uint16
	lost  [windows]uint16
}

// roll makes piece the latest one.
func (w *window) roll(piece int32) {
	if piece <= w.piece {
		return
	}
	if piece-w.piece >= windows {
		*w = window{piece: piece}
		return
	}
	for w.piece < piece {
		w.piece++
		w.sent[w.piece%windows], w.lost[w.piece%windows] = 0, 0
	}
}

func (w *window) addSent(piece int32, n int) { w.roll(piece); add(&w.sent[piece%windows], n) }
func (w *window) addLost(piece int32, n int) { w.roll(piece); add(&w.lost[piece%windows], n) }

func add(counter *uint16, n int) {
	*counter = uint16(min(int(*counter)+min(max(n, 0), math.MaxUint16), math.MaxUint16))
}

// sums returns what the window holds; losses are never more than what was sent,
// though those of what was sent before the window's start are counted in it.
func (w *window) sums() (sent, lost int) {
	for i := range windows {
		sent += int(w.sent[i])
		lost += int(w.lost[i])
	}
	return max(sent, lost), lost
}

// since returns how many packets were lost, in how many pieces, and how many were
// sent from the piece before the first of these on. What was sent in the latest
// piece is left out, since its losses are not known yet.
func (w *window) since() (sent, lost, pieces int) {
	before := 0
	for i := w.piece + 1; i <= w.piece+windows; i++ { // the oldest first
		l := int(w.lost[i%windows])
		if l > 0 {
			if pieces == 0 {
				sent = before
			}
			pieces++
		}
		lost += l
		if before = int(w.sent[i%windows]); pieces > 0 && i < w.piece+windows {
			sent += before
		}
	}
	return max(sent, lost), lost, pieces
}

// standsOut returns how unlikely it is that as many of n are lost where a part q
// is: the negative logarithm of Chernoff's bound, 0 if they are no more than
// expected.
func standsOut(lost, n int, q float64) float64 {
	if n == 0 {
		return 0
	}
	p := float64(lost) / float64(n)
	if p <= q {
		return 0
	}
	return float64(n) * divergence(p, q)
}

// differs returns how unlikely it is that losses of a of n and b of m packets
// come of one and the same rate: half of the statistic of a G-test, which does
// without the rate and so tells less where there are few packets.
func differs(a, n, b, m int) float64 {
	rate := float64(a+b) / float64(n+m)
	return float64(n)*divergence(float64(a)/float64(n), rate) + float64(m)*divergence(float64(b)/float64(m), rate)
}

// divergence is Kullback and Leibler's, of a coin's rate p from q.
func divergence(p, q float64) (d float64) {
	if p > 0 {
		d += p * math.Log(p/q)
	}
	if p < 1 {
		d += (1 - p) * math.Log((1-p)/(1-q))
	}
	return d
}

// blameless is the rate of losses up to which nobody is blamed where others
// lose at that rate.
func blameless(others float64) float64 { return min(max(least, 2*others), 0.5) }
