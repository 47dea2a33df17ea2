//go:build !race

package stack

const raced = false
