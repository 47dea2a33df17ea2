package config

import "fmt"

// Choice is a value of a configuration: true, false, or auto, which leaves it to weft.
type Choice uint8

// The choices.
const (
	Auto Choice = iota
	Yes
	No
)

// UnmarshalText takes auto, true and false.
func (c *Choice) UnmarshalText(text []byte) error {
	for i, word := range []string{"auto", "true", "false"} {
		if string(text) == word {
			*c = Choice(i)
			return nil
		}
	}
	return fmt.Errorf("%q is neither auto, true nor false", text)
}

// Or returns what was chosen, and what is given if that was left to weft.
func (c Choice) Or(auto bool) bool {
	if c == Auto {
		return auto
	}
	return c == Yes
}
