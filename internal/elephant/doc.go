// Package elephant is the part of a scheduler of elephants that is where the flows are: at
// hosts and edge switches (Al-Fares' thesis, §3.1.7 and ch. 4, Hedera).
//
// A Detector turns what a program has counted into rates, and says which flows take more than a
// share of their host's link: the elephants, which are reported. Pins keeps the paths that the
// scheduler has answered with, until they expire. Programs: weft/internal/kernel/bpf/elephant.h.
package elephant
