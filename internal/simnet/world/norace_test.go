//go:build !race

package world

const race = false
