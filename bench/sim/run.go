package sim

import "errors"

// Run simulates. An error names the field of Config that is wrong.
//
// A run takes one goroutine, allocates nothing per packet, and gives the same
// Result for the same Config.
func Run(c Config) (*Result, error) { return nil, errors.New("sim: under construction") }
