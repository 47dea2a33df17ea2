// Package sim simulates a fabric packet by packet, with the same code that
// chooses paths, cuts flows and restores order at real hosts.
package sim
