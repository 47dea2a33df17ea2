// Package discover makes a fabric's graph of what others know of it: a containerlab file,
// or what switches say by LLDP. It guesses what these do not say, and lists its guesses.
// It is pure.
package discover
