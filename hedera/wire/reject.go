package wire

// Reject says why a message, or a flow in one, was not accepted. It is the decoder's
// error, and counters go by it.
type Reject uint8

// In the order of the checks: the cheapest comes first.
const (
	RejectTruncated Reject = iota // shorter than its header, its entries or its MAC say
	RejectOversized               // longer than MaxMessage
	RejectVersion                 // not weft's, or of an unknown version
	RejectType                    // of a type that this side does not accept
	RejectFabric                  // of another fabric: the fingerprints differ
	RejectNode                    // from a node that is none of the fabric's hosts and edge switches
	RejectSource                  // not from the address of a server, or of the node that it says it is
	RejectKey                     // signed by an unknown key, or not signed
	RejectMAC                     // wrong MAC
	RejectReplay                  // of an old session, or with a counter seen before
	RejectTrailing                // bytes behind the last entry, or not in canonical form
	RejectEpoch                   // of a leader that is none any more
	RejectLeader                  // reports to a server that does not lead
	RejectBudget                  // flows above the node's budget of reports
	NumRejects
)

var rejectNames = [NumRejects]string{
	"truncated", "oversized", "version", "type", "fabric", "node", "source", "key", "mac",
	"replay", "trailing", "epoch", "leader", "budget",
}

func (r Reject) String() string { return rejectNames[r] }

func (r Reject) Error() string { return "hedera: rejected: " + rejectNames[r] }

// Rejects counts what was not accepted, by reason.
type Rejects [NumRejects]uint64

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

// Total returns the sum of all reasons.
func (r Rejects) Total() (n uint64) {
	for _, c := range r {
		n += c
	}
	return n
}

// add counts err if it is a Reject.
func (r *Rejects) add(err error) {
	if kind, ok := err.(Reject); ok {
		r[kind]++
	}
}
