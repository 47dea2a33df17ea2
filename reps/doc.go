// Package reps recycles the paths of acknowledged packets: REPS (Bonato et al., "REPS:
// Recycled Entropy Packet Spraying for Adaptive Load Balancing and Failure Mitigation",
// arXiv 2407.21625). It is pure.
//
// A Selector keeps, for one flow, a ring of the paths of the latest 8 packets that were
// acknowledged without a sign of congestion. A packet takes the oldest of them that has
// not been taken yet, and a random path when there is none. So paths that carry much are
// taken often, and nothing is kept of those that do not. After a timeout a path is taken
// to be dead somewhere: for 100 ms the selector is frozen. It draws no random paths but
// takes those in the ring again and again.
//
// # What differs from the paper
//
//   - Its entropies are what switches hash, and nobody knows which path an entropy is.
//     Here they are paths (the paper names that in §3.3). So a path that has gone from
//     the topology, or that timed out, is taken out of the ring.
//   - There a receiver returns each packet's entropy. TCP returns sequence numbers, and an
//     acknowledgement covers all segments before its number and in its first block
//     (internal/fate). Several come at once, of which the last 8 stay, as where the paper
//     has acknowledgements that come together (§4.7). An echo of congestion counts for all
//     that its packet acknowledges. By RFC 3168 it stays until the sender has reacted:
//     then a round trip's paths are not recycled. By DCTCP (RFC 8257) it is precise.
//   - The paper's receivers take packets in any order. Weft's put them in order below TCP, so
//     that acknowledgements of fast paths wait for slow ones and tell less. In the simulator
//     reps carries more than random paths over links that are slow without a word where
//     nobody restores the order, and about as much where somebody does.
//   - What was sent more than once is not recycled: the acknowledgement may be of either.
//   - The paper's transport finds losses by timeouts of 70 µs, or by trimmed packets. TCP
//     finds most by later acknowledgements. Such a loss freezes nothing, as a trimmed
//     packet does not: the lost packet's path is simply not recycled. Only a resend
//     after flowcell.LeastTimeout counts as a timeout.
//   - How long it is frozen and how long it explores afterwards is ours. The paper leaves
//     both to the network. Policies that know of failures by other means (package
//     liveness) mostly know of them sooner.
package reps
