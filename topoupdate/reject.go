package topoupdate

// Reject says why a message, or an entry, was not accepted. It is the decoder's error,
// and Stats counts by it.
type Reject uint8

// In the order of the checks: the cheapest comes first.
const (
	RejectTruncated  Reject = iota // shorter than its header, its entries or its MAC say
	RejectOversized                // longer than MaxMessage
	RejectVersion                  // not weft's, or of an unknown version
	RejectType                     // neither hello nor update, or of a type that this node does not accept
	RejectFabric                   // of another fabric: the fingerprints differ
	RejectSender                   // not from the node at the other end of the port
	RejectSource                   // unsigned, and not from an address of the next switch
	RejectReplay                   // of an old session, or with a counter seen before
	RejectKey                      // signed by an unknown key, or not signed
	RejectMAC                      // wrong MAC
	RejectTrailing                 // bytes behind the last entry, or not in canonical form
	RejectOriginator               // an entry of no switch, or of a switch whose entries do not come here
	RejectPort                     // an entry about a port that its switch does not have, or that leads to a server
	RejectAge                      // an entry older than MaxAge
	RejectBudget                   // an entry above the port's budget of news
	NumRejects
)

var rejectNames = [NumRejects]string{
	"truncated", "oversized", "version", "type", "fabric", "sender", "source", "replay",
	"key", "mac", "trailing", "originator", "port", "age", "budget",
}

func (r Reject) String() string { return rejectNames[r] }

func (r Reject) Error() string { return "topoupdate: rejected: " + rejectNames[r] }

// Rejects counts what was not accepted, by reason.
type Rejects [NumRejects]uint64

// Total returns the sum of all reasons.
func (r Rejects) Total() (n uint64) {
	for _, c := range r {
		n += c
	}
	return n
}

// ByName returns the counts that are not zero, by the names of their reasons.
func (r Rejects) ByName() map[string]uint64 {
	m := make(map[string]uint64)
	for i, c := range r {
		if c > 0 {
			m[Reject(i).String()] = c
		}
	}
	return m
}

// add counts err if it is a Reject, and reports whether it is.
func (r *Rejects) add(err error) bool {
	if kind, ok := err.(Reject); ok {
		r[kind]++
		return true
	}
	return false
}
