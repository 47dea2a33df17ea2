// Package steadyclock is a time of day that does not go back while the machine runs,
// not even from one start of a program to the next: for numbers that must grow and
// that others compare, such as those of datagrams with a MAC and of an agent's starts.
//
// The machine's own clock may be set back at any time. So the difference between it and
// the time since boot is kept in a file, and only ever grows until the next boot. After
// that nothing is known of before, and the time is the machine's. It is for Linux.
package steadyclock
