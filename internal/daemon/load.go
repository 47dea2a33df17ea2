package daemon

import "weft/internal/config"

// Load reads and validates a configuration file.
func Load(file string) (*Config, error) {
	text, err := config.Read(file, "weft host")
	if err != nil {
		return nil, err
	}
	return parse(text, file)
}

// parse reads and validates a configuration. file is its name in errors; files
// that it names are read.
func parse(text []byte, file string) (*Config, error) {
	c := defaults()
	var err error
	if c.lines, err = config.Decode(text, file, &c); err != nil {
		return nil, err
	}
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &c, nil
}
