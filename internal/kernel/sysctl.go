package kernel

import "fmt"

// Sysctl is a kernel setting. An Optional one is missing from some kernels, and
// the node works without it.
type Sysctl struct {
	Key      string `json:"key"`
	Value    string `json:"value"`
	Optional bool   `json:"optional,omitempty"`
}

// Command is the setting as a shell command.
func (s Sysctl) Command() string {
	c := fmt.Sprintf("sysctl -w %s=%s", s.Key, s.Value)
	if s.Optional {
		c += " || true # not in every kernel"
	}
	return c
}
