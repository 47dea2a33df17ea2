// Package faults breaks one thing after the other in a lab with real daemons and real TCP
// traffic, and asks weft status, weft blame and weft doctor what is wrong, as an operator would.
// A fault counts as told if the first thing that one of them says names its cause, within ten
// seconds. Without a fault, all that they say is a false alarm.
package faults
