// Package doctor finds out what is wrong with a host or a switch. Examine looks at Facts, which
// package gather has collected from the machine and its daemon, and returns a Finding for each
// check: well, or wrong with the cause and the fix.
//
// The findings come in the order in which they are worth acting on: what keeps weft from working
// here, then what explains what the daemon sees, then what the daemon sees, then what only costs
// speed. A symptom that an earlier finding explains is still there, behind it.
//
// All of it is pure.
package doctor
