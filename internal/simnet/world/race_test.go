//go:build race

package world

// With the race detector everything takes ten times as long.
const race = true
