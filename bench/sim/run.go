package sim

// Run simulates. An error names the field of Config that is wrong.
//
// A run takes one goroutine, allocates nothing per packet, and gives the same
// Result for the same Config.
func Run(c Config) (*Result, error) {
	s, err := newSimulation(c)
	if err != nil {
		return nil, err
	}
	s.run()
	if s.err != nil {
		return nil, s.err
	}
	return s.result(), nil
}
